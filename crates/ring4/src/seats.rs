//! What four seats do with shares: agree on keys, enter, multiply, open, and check every tag before they go
//! on.

pub(crate) mod check;
pub(crate) mod courier;
pub(crate) mod device_product;
pub(crate) mod input;
pub(crate) mod joint;
pub(crate) mod member;
pub(crate) mod open;
pub(crate) mod party;
pub(crate) mod product;
pub(crate) mod randomness;
pub(crate) mod setup;
