//! The table of what an hour of an instance costs, as the window knows it.

use crate::domain::PriceTable;

/// What stands in the user's table.
#[derive(Debug, Default)]
pub struct Prices {
    pub table: PriceTable,
    /// Where the file lies; empty before it was read.
    pub path: String,
    /// Why it could not be read or written.
    pub problem: Option<String>,
}
