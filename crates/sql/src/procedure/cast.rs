//! Values become what a variable's type wants.

use super::good::Good;
use crate::analyse;
use crate::session::Session;
use base::Result;
use engine::catalog::model::CatalogView;
use expr::TypeRef;
use expr::code::Code;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use types::{Datum, RecordValue};

/// The casts that a block has needed so far.
#[derive(Default)]
pub(super) struct Casts {
    made: HashMap<(TypeRef, TypeRef), Code>,
    good: Option<Good>,
}

impl Casts {
    /// `value`, of type `from`, as one of type `to`.
    ///
    /// # Errors
    /// What the cast raises, and a domain's conditions.
    pub fn assign(
        &mut self,
        session: &Session,
        value: Datum,
        from: TypeRef,
        to: TypeRef,
    ) -> Result<Datum> {
        // A domain's conditions are asked where it is assigned to, whatever was asked before.
        if to.base() == to && from.oid == to.oid && (to.typmod < 0 || to.typmod == from.typmod) {
            return Ok(value);
        }
        if let Datum::Record(row) = &value
            && let Some(fields) = row_type(session, to)?
        {
            return self.assign_row(session, row, to, &fields);
        }
        if !self.good.as_ref().is_some_and(|good| good.holds(session)) {
            self.made.clear();
            self.good = Some(Good::now(session));
        }
        let code = match self.made.entry((from, to)) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(place) => {
                let (state, env) = (session.state().as_ref(), session.env().as_ref());
                let cast = analyse::analyse_variable_cast(from, to, state, env)?;
                place.insert(expr::code::compile(&expr::fold::fold(&cast))?)
            }
        };
        session.evaluate_over(code, &[value])
    }

    /// A row becomes one of a row type, field by field.
    fn assign_row(
        &mut self,
        session: &Session,
        row: &RecordValue,
        to: TypeRef,
        fields: &[(String, TypeRef)],
    ) -> Result<Datum> {
        let base = to.base();
        let mut values = Vec::with_capacity(fields.len());
        for (i, (_, ty)) in fields.iter().enumerate() {
            let (value, from) = match (row.fields.get(i), row.columns.get(i)) {
                (Some(value), Some(column)) => {
                    let from = TypeRef { oid: column.type_oid, typmod: column.typmod };
                    (value.clone(), from)
                }
                // What is missing is NULL, and what is too much is left out.
                _ => (Datum::Null, *ty),
            };
            values.push(self.assign(session, value, from, *ty)?);
        }
        let columns = fields.iter().map(|(name, ty)| types::RecordColumn {
            name: types::Text::from(name.as_str()),
            type_oid: ty.oid,
            typmod: ty.typmod,
        });
        let value = RecordValue { type_oid: base.oid, columns: columns.collect(), fields: values };
        let value = Datum::Record(std::sync::Arc::new(value));
        if base != to {
            types::domains::check(to.oid, &value, session.env().as_ref())?;
        }
        Ok(value)
    }
}

/// The fields of a row type; None if it is no such type.
pub(super) fn row_type(session: &Session, ty: TypeRef) -> Result<Option<Vec<(String, TypeRef)>>> {
    let base = ty.base();
    if base.oid == types::oids::RECORD || !analyse::is_composite(base.oid) {
        return Ok(None);
    }
    let table = session.state().table_of_row_type(base.oid)?;
    Ok(table.map(|table| {
        let live = table.columns.iter().filter(|c| !c.dropped);
        live.map(|c| (c.name.clone(), c.declared())).collect()
    }))
}
