#![no_main]

#[path = "../../tests/library/hostile/parsers.rs"]
#[allow(dead_code, reason = "each target uses one")]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    parsers::graph_names(bytes);
});
