//! Images: where they come from (`source`) and how their bytes become pixels (`decode`).

pub mod decode;
pub mod source;
