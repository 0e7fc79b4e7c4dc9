//! Epochs that cannot be restarted.

use std::fs;

use stillpoint_ids::Rank;
use stillpoint_image::format::VERSION;
use stillpoint_image::image_name;
use stillpoint_tests::command::exit;
use stillpoint_tests::job;
use stillpoint_tests::seed::Seed;
use stillpoint_tests::trial::Trial;
use stillpoint_tests::{Failed, broken};

use crate::common::{fails, io, verify, with_suspended};

/// Checks that `verify` and `restart` both refuse the epoch, and name the file.
fn both_refuse(trial: &Trial, words: &[&str]) -> Result<(), Failed> {
    verify(trial)?.expect_one_reason(exit::FAILED, words)?;
    fails(trial.restarted()?, exit::FAILED, words).map_err(|failed| format!("restart: {failed}"))
}

#[test]
fn the_wrong_number_of_ranks() {
    with_suspended("wrong-ranks", |trial, _| {
        for ranks in [1, 3] {
            let job = trial.launch(job::restarted(ranks, &trial.epochs_at())?)?;
            fails(job, exit::FAILED, &["2 ranks", "mpirun -n 2"])?;
        }
        Ok(())
    });
}

#[test]
fn missing_and_truncated_images() {
    with_suspended("missing-image", |trial, epoch| {
        for rank in Rank::all(2) {
            let name = image_name(rank);
            let _broken = broken::missing(&epoch.join(&name))?;
            both_refuse(trial, &[&name]).map_err(|failed| format!("missing: {failed}"))?;
        }
        let path = epoch.join(image_name(Rank(1)));
        let whole = fs::metadata(&path).map_err(io)?.len();
        for keep in [0, 7, 63, 64, whole / 2, whole - 1] {
            let _broken = broken::truncated(&path, keep)?;
            both_refuse(trial, &[&image_name(Rank(1))])
                .map_err(|failed| format!("{keep} of {whole} bytes: {failed}"))?;
        }
        Ok(())
    });
}

#[test]
fn missing_and_broken_manifests() {
    with_suspended("broken-manifest", |trial, epoch| {
        let path = epoch.join(stillpoint_image::manifest::NAME);
        let mut seed = Seed::new();
        let whole = fs::metadata(&path).map_err(io)?.len();
        {
            let _broken = broken::missing(&path)?;
            both_refuse(trial, &["manifest"])?;
        }
        {
            let _broken = broken::truncated(&path, whole / 2)?;
            both_refuse(trial, &["manifest"])?;
        }
        let bit = seed.below(whole * 8);
        let _broken = broken::flipped(&path, bit)?;
        both_refuse(trial, &["manifest"])
            .map_err(|failed| format!("{failed}\nbit {bit} (STILLPOINT_TEST_SEED={})", seed.start))
    });
}

#[test]
fn images_with_a_flipped_bit() {
    with_suspended("flipped", |trial, epoch| {
        let mut seed = Seed::new();
        let name = image_name(Rank(0));
        let path = epoch.join(&name);
        let bits = fs::metadata(&path).map_err(io)?.len() * 8;
        // One bit in the header, one in the trailer, others anywhere, mostly in page data.
        let mut chosen = vec![seed.below(64 * 8), bits - 1 - seed.below(24 * 8)];
        chosen.extend((0..4).map(|_| seed.below(bits)));
        for bit in chosen {
            let _broken = broken::flipped(&path, bit)?;
            both_refuse(trial, &[&name]).map_err(|failed| {
                format!(
                    "{failed}\nbit {bit} of {bits} (STILLPOINT_TEST_SEED={})",
                    seed.start
                )
            })?;
        }
        // `verify` is quick, so it can check many bits.
        for _ in 0..40 {
            let bit = seed.below(bits);
            let _broken = broken::flipped(&path, bit)?;
            verify(trial)?
                .expect_one_reason(exit::FAILED, &[&name])
                .map_err(|failed| format!("bit {bit} of {bits}: {failed}"))?;
        }
        Ok(())
    });
}

#[test]
fn an_image_of_another_version() {
    with_suspended("version", |trial, epoch| {
        let name = image_name(Rank(1));
        let _broken = broken::later_version(&epoch.join(&name))?;
        let version = format!("version {}", VERSION + 1);
        both_refuse(trial, &[&name, &version, "release"])
    });
}

/// Returns a feature that programs can use, but that this processor lacks.
fn lacking() -> Result<&'static str, Failed> {
    let flags = fs::read_to_string("/proc/cpuinfo").map_err(io)?;
    let has = |feature: &str| flags.split_whitespace().any(|flag| flag == feature);
    ["xop", "fma4", "amx_fp16", "avx512_vp2intersect"]
        .into_iter()
        .find(|feature| !has(feature))
        .ok_or_else(|| "this processor has everything".to_owned())
}

#[test]
fn an_image_from_another_processor() {
    with_suspended("processor", |trial, epoch| {
        let feature = lacking()?;
        let _broken = broken::needs_feature(epoch, Rank(1), feature)?;
        // As a file the image is whole.
        verify(trial)?.expect(exit::DONE)?;
        let name = image_name(Rank(1));
        fails(trial.restarted()?, exit::FAILED, &[feature, &name])
    });
}
