//! `page`: see ARCHITECTURE.md.

#![expect(unsafe_code, reason = "raw memory and file mappings; each block says why it is sound")]
