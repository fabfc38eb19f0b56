//! Which collation an expression over one table has, as indexes note it. All are in the order of code points.

use base::Oid;
use engine::catalog::model::Table;
use expr::Expr;

const DEFAULT: Oid = Oid(100);

/// The collation that is written, or its column's, or that of what it is made of; none of a type that has none.
pub(crate) fn of_expr(e: &Expr, table: &Table) -> Oid {
    let own = types::type_info(e.ty().oid).map_or(Oid::INVALID, |i| i.collation);
    match e {
        _ if !own.is_valid() => Oid::INVALID,
        Expr::Collate { collation, .. } => Oid(*collation),
        Expr::Var { column, .. } => {
            let found = table.columns.iter().find(|c| c.number == *column);
            found.map_or(own, |c| c.collation)
        }
        _ => {
            let mut found = None;
            e.for_children(&mut |e| {
                let below = of_expr(e, table);
                if below.is_valid() && below != DEFAULT {
                    found.get_or_insert(below);
                }
            });
            found.unwrap_or(own)
        }
    }
}
