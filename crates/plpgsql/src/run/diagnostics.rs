//! GET DIAGNOSTICS.

use super::Run;
use super::raise::NO_HANDLER;
use crate::ast::{Diagnostic, Target};
use crate::frame::{INT8, TEXT};
use crate::host::Value;
use base::{Error, Result};
use expr::TypeRef;
use types::{Datum, oids};

impl Run<'_> {
    pub(super) fn diagnostics(
        &mut self,
        stacked: bool,
        items: &[(Target, Diagnostic)],
    ) -> Result<()> {
        if stacked && self.handling.is_none() {
            return Err(Error::sql(
                NO_HANDLER,
                "GET STACKED DIAGNOSTICS cannot be used outside an exception handler",
            ));
        }
        for (target, item) in items {
            let value = self.diagnostic(*item);
            self.assign_target(target, value)?;
        }
        Ok(())
    }

    fn diagnostic(&self, item: Diagnostic) -> Value {
        let error = self.handling.as_deref();
        let text =
            |text: Option<String>| Value { value: Datum::text(text.unwrap_or_default()), ty: TEXT };
        let of = |field: fn(&base::SqlError) -> Option<String>| text(error.and_then(field));
        let with_outer = |mut lines: String| {
            if let Some(outer) = self.host.outer_context() {
                lines.push('\n');
                lines.push_str(&outer);
            }
            lines
        };
        match item {
            Diagnostic::RowCount => {
                let count = i64::try_from(self.processed).unwrap_or(i64::MAX);
                Value { value: Datum::Int8(count), ty: INT8 }
            }
            Diagnostic::RoutineOid => {
                let ty = TypeRef { oid: oids::OID, typmod: -1 };
                Value { value: Datum::Oid(self.frame.routine().oid), ty }
            }
            Diagnostic::Context => text(Some(with_outer(self.frame.context()))),
            Diagnostic::ErrorContext => text(error.and_then(|e| e.context.clone()).map(with_outer)),
            Diagnostic::Detail => of(|e| e.detail.clone()),
            Diagnostic::Hint => of(|e| e.hint.clone()),
            Diagnostic::Returned => of(|e| Some(e.state.as_str().to_owned())),
            Diagnostic::Column => of(|e| e.column.clone()),
            Diagnostic::Constraint => of(|e| e.constraint.clone()),
            Diagnostic::DataType => of(|e| e.data_type.clone()),
            Diagnostic::Message => of(|e| Some(e.message.clone())),
            Diagnostic::Table => of(|e| e.table.clone()),
            Diagnostic::Schema => of(|e| e.schema.clone()),
        }
    }
}
