//! The settings registry (PostgreSQL's GUCs).
