#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    stillpoint_fuzzed::protocol(bytes);
});
