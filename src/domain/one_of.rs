//! The error for a word that names no variant of an enum.

use strum::VariantArray;

/// `one of json, csv`: all words of `T`. For strum's `parse_err_fn`, so it receives the rejected word, which clap
/// quotes itself.
pub fn one_of<T: VariantArray + Into<&'static str> + Copy>(_rejected: &str) -> String {
    let words: Vec<&str> = T::VARIANTS.iter().map(|&variant| variant.into()).collect();
    format!("one of {}", words.join(", "))
}
