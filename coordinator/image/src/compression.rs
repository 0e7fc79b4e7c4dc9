//! Compression of page data.

use std::fmt;
use std::io;
use std::str::FromStr;

/// The form in which a chunk's bytes are stored.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None = 0,
    Lz4 = 1,
    Zstd = 2,
}

impl Codec {
    pub(crate) fn from_u32(value: u32) -> Option<Codec> {
        [Codec::None, Codec::Lz4, Codec::Zstd]
            .into_iter()
            .find(|codec| *codec as u32 == value)
    }
}

/// The value of `--compress`. The default, lz4, shrinks a small program's image to a third and keeps up with most disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    None,
    #[default]
    Lz4,
    Zstd {
        level: i32,
    },
}

/// The level of zstd if the option does not give one.
const DEFAULT_LEVEL: i32 = 3;

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Compression, String> {
        match text {
            "none" => return Ok(Compression::None),
            "lz4" => return Ok(Compression::Lz4),
            "zstd" => {
                return Ok(Compression::Zstd {
                    level: DEFAULT_LEVEL,
                });
            }
            _ => {}
        }
        text.strip_prefix("zstd:")
            .and_then(|level| level.parse().ok())
            .filter(|level| (-7..=22).contains(level))
            .map(|level| Compression::Zstd { level })
            .ok_or_else(|| format!("'{text}' is not a compression: none, lz4, zstd or zstd:LEVEL with -7 <= LEVEL <= 22"))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("none"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Zstd { level } => write!(f, "zstd:{level}"),
        }
    }
}

/// Compresses many chunks, one after the other.
pub(crate) enum Compressor {
    None,
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub(crate) fn new(compression: Compression) -> io::Result<Compressor> {
        Ok(match compression {
            Compression::None => Compressor::None,
            Compression::Lz4 => Compressor::Lz4,
            Compression::Zstd { level } => Compressor::Zstd(zstd::bulk::Compressor::new(level)?),
        })
    }

    /// Compresses into `output`. Returns `None` if that would not make the bytes fewer.
    pub(crate) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<(Codec, usize)> {
        let (codec, bytes) = match self {
            Compressor::None => return None,
            Compressor::Lz4 => (
                Codec::Lz4,
                lz4_flex::block::compress_into(input, output).ok()?,
            ),
            Compressor::Zstd(compressor) => (
                Codec::Zstd,
                compressor.compress_to_buffer(input, output).ok()?,
            ),
        };
        (bytes < input.len()).then_some((codec, bytes))
    }
}

/// Compression is worth its time if a sample shrinks by more than one part in this many.
const LEAST_SHRINKING: usize = 16;
const SAMPLES: usize = 4;
const SAMPLE_BYTES: usize = 8 << 10;

impl Compressor {
    /// Returns whether any of a few samples of the input becomes shorter. If nothing of a chunk can be compressed, the samples show it in a
    /// fraction of the time.
    pub(crate) fn shrinks(&mut self, input: &[u8], output: &mut [u8]) -> bool {
        let distance = input.len() / SAMPLES;
        if distance < 2 * SAMPLE_BYTES {
            return true;
        }
        (0..SAMPLES).any(|number| {
            let start = number * distance + (distance - SAMPLE_BYTES) / 2;
            let sample = &input[start..start + SAMPLE_BYTES];
            let shrunk = self.compress(sample, output);
            shrunk.is_some_and(|(_, bytes)| bytes < SAMPLE_BYTES - SAMPLE_BYTES / LEAST_SHRINKING)
        })
    }
}

/// Returns the most bytes that compressing `bytes` bytes may take, whatever the codec.
pub(crate) fn worst_case(bytes: usize) -> usize {
    lz4_flex::block::get_maximum_output_size(bytes).max(zstd::zstd_safe::compress_bound(bytes))
}

/// Fills `output` exactly.
pub(crate) fn decompress(codec: Codec, input: &[u8], output: &mut [u8]) -> Result<(), String> {
    let bytes = match codec {
        Codec::None => {
            if input.len() != output.len() {
                return Err(format!("{} bytes stored for {}", input.len(), output.len()));
            }
            output.copy_from_slice(input);
            input.len()
        }
        Codec::Lz4 => lz4_flex::block::decompress_into(input, output)
            .map_err(|error| format!("lz4: {error}"))?,
        Codec::Zstd => zstd::bulk::decompress_to_buffer(input, output)
            .map_err(|error| format!("zstd: {error}"))?,
    };
    if bytes != output.len() {
        return Err(format!(
            "decompresses to {bytes} bytes instead of {}",
            output.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_read_as_it_is_shown() {
        for text in ["none", "lz4", "zstd:1", "zstd:22"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        assert_eq!(
            "zstd".parse(),
            Ok(Compression::Zstd {
                level: DEFAULT_LEVEL
            })
        );
        for text in ["", "LZ4", "zstd:", "zstd:23", "gzip"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }
}
