//! The table of what an hour of an instance costs, as the window knows it.

use crate::domain::PriceTable;

/// The user's table of prices.
#[derive(Debug, Default)]
pub struct Prices {
    pub table: PriceTable,
    /// The path of the file; empty before it was read.
    pub path: String,
    /// Why it could not be read or written.
    pub problem: Option<String>,
}
