//! Four-party replicated secret sharing.
