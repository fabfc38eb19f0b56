//! Functions against PostgreSQL 18's answers.

use crate::call;

#[test]
fn integers() {
    assert_eq!(call("int4pl(int4,int4)", &["2147483647", "1"]), "ERROR: integer out of range");
    assert_eq!(call("int4div(int4,int4)", &["7", "0"]), "ERROR: division by zero");
    assert_eq!(call("int4div(int4,int4)", &["-7", "2"]), "-3");
    assert_eq!(call("int8mod(int8,int8)", &["-7", "2"]), "-1");
    assert_eq!(call("int2um(int2)", &["-32768"]), "ERROR: smallint out of range");
}
