//! The price table of instances per hour, as the window knows it.

use crate::sagemaker::spec::transform::PriceTable;

/// The user's price table.
#[derive(Debug, Default)]
pub struct Prices {
    pub table: PriceTable,
    /// The path of the file; empty before it is read.
    pub path: String,
    /// Why it could not be read or written.
    pub problem: Option<String>,
}
