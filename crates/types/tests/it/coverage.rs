//! Every operator, cast and btree support function over the types of ours has a body.

use types::{CastMethod, facts, registry};

/// Types whose functions are still to come, or that Ebb does not have.
fn outside(oid: base::Oid) -> bool {
    types::type_info(oid).is_some_and(|t| {
        matches!(
            t.name,
            "inet"
                | "cidr"
                | "jsonpath"
                | "aclitem"
                | "_aclitem"
                | "pg_snapshot"
                | "varbit"
                | "bit"
                | "anyenum"
                | "pg_node_tree"
        )
    })
}

#[test]
#[ignore = "a list for whoever adds functions"]
fn list_what_is_missing() {
    for p in facts::procs() {
        if registry::function(p.oid).is_none() && !p.args.iter().any(|a| outside(*a)) {
            let args: Vec<_> =
                p.args.iter().map(|a| types::type_info(*a).map_or("?", |t| t.name)).collect();
            println!("{}({}) = {}", p.name, args.join(","), p.symbol);
        }
    }
    println!("-- operators");
    for o in facts::operators() {
        if registry::function(o.function).is_none() && !outside(o.left) && !outside(o.right) {
            let name = |t| types::format_type(t, -1);
            println!(
                "{} {} {} = {}",
                name(o.left),
                o.name,
                name(o.right),
                facts::proc(o.function).map_or("?", |p| p.name)
            );
        }
    }
    println!("-- casts");
    for c in facts::casts() {
        if let CastMethod::Function(f) = c.method
            && registry::function(f).is_none()
        {
            let name = |t| types::format_type(t, -1);
            println!("{} -> {}", name(c.source), name(c.target));
        }
    }
}
