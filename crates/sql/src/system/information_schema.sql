-- The information schema: PostgreSQL 18's names and columns.
-- Its domains (sql_identifier, character_data, …) are shown as the types below them.

CREATE VIEW information_schema.information_schema_catalog_name AS
  SELECT current_database()::name AS catalog_name;

CREATE VIEW information_schema.schemata AS
  SELECT current_database()::name AS catalog_name, n.nspname AS schema_name,
         u.rolname AS schema_owner, NULL::name AS default_character_set_catalog,
         NULL::name AS default_character_set_schema, NULL::name AS default_character_set_name,
         NULL::varchar AS sql_path
    FROM pg_namespace n JOIN pg_authid u ON u.oid = n.nspowner
   WHERE pg_has_role(n.nspowner, 'USAGE') OR has_schema_privilege(n.oid, 'CREATE, USAGE');

CREATE VIEW information_schema.tables AS
  SELECT current_database()::name AS table_catalog, n.nspname AS table_schema,
         c.relname AS table_name,
         CASE WHEN c.relpersistence = 't' THEN 'LOCAL TEMPORARY'
              WHEN c.relkind IN ('r', 'p') THEN 'BASE TABLE'
              WHEN c.relkind = 'v' THEN 'VIEW' ELSE 'FOREIGN' END::varchar AS table_type,
         NULL::name AS self_referencing_column_name, NULL::varchar AS reference_generation,
         NULL::name AS user_defined_type_catalog, NULL::name AS user_defined_type_schema,
         NULL::name AS user_defined_type_name,
         CASE WHEN c.relkind IN ('r', 'p')
                OR c.relkind IN ('v', 'f') AND pg_relation_is_updatable(c.oid, false) & 8 = 8
              THEN 'YES' ELSE 'NO' END::varchar(3) AS is_insertable_into,
         'NO'::varchar(3) AS is_typed, NULL::varchar AS commit_action
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'v', 'f', 'p') AND NOT pg_is_other_temp_schema(n.oid)
     AND (pg_has_role(c.relowner, 'USAGE')
          OR has_table_privilege(c.oid,
               'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
          OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.columns AS
  SELECT current_database()::name AS table_catalog, n.nspname AS table_schema,
         c.relname AS table_name, a.attname AS column_name, a.attnum::int AS ordinal_position,
         CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END::varchar
           AS column_default,
         CASE WHEN a.attnotnull OR t.typnotnull THEN 'NO' ELSE 'YES' END::varchar(3) AS is_nullable,
         CASE WHEN u.typelem <> 0 AND u.typlen = -1 THEN 'ARRAY'
              WHEN un.nspname = 'pg_catalog' THEN format_type(u.oid, NULL)
              ELSE 'USER-DEFINED' END::varchar AS data_type,
         CASE WHEN u.oid IN (1042, 1043) AND greatest(a.atttypmod, t.typtypmod) >= 0 THEN greatest(a.atttypmod, t.typtypmod) - 4
              WHEN u.oid IN (1560, 1562) AND greatest(a.atttypmod, t.typtypmod) >= 0 THEN greatest(a.atttypmod, t.typtypmod) END
           AS character_maximum_length,
         CASE WHEN u.oid = 25 THEN 1073741824
              WHEN u.oid IN (1042, 1043) THEN
                CASE WHEN greatest(a.atttypmod, t.typtypmod) < 0 THEN 1073741824 ELSE (greatest(a.atttypmod, t.typtypmod) - 4) * 4 END END
           AS character_octet_length,
         CASE u.oid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24
              WHEN 701 THEN 53
              WHEN 1700 THEN
                CASE WHEN greatest(a.atttypmod, t.typtypmod) >= 0 THEN ((greatest(a.atttypmod, t.typtypmod) - 4) >> 16) & 65535 END END
           AS numeric_precision,
         CASE WHEN u.oid IN (20, 21, 23, 700, 701) THEN 2 WHEN u.oid = 1700 THEN 10 END
           AS numeric_precision_radix,
         CASE WHEN u.oid IN (20, 21, 23) THEN 0
              WHEN u.oid = 1700 AND greatest(a.atttypmod, t.typtypmod) >= 0 THEN (greatest(a.atttypmod, t.typtypmod) - 4) & 65535 END
           AS numeric_scale,
         CASE WHEN u.oid = 1082 THEN 0
              WHEN u.oid IN (1083, 1114, 1184, 1266) THEN
                CASE WHEN greatest(a.atttypmod, t.typtypmod) < 0 THEN 6 ELSE greatest(a.atttypmod, t.typtypmod) END
              WHEN u.oid = 1186 THEN
                CASE WHEN greatest(a.atttypmod, t.typtypmod) < 0 OR greatest(a.atttypmod, t.typtypmod) & 65535 = 65535 THEN 6
                     ELSE greatest(a.atttypmod, t.typtypmod) & 65535 END END AS datetime_precision,
         NULL::varchar AS interval_type, NULL::int AS interval_precision,
         NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
         NULL::name AS character_set_name,
         CASE WHEN l.oid IS NOT NULL THEN current_database() END::name AS collation_catalog,
         CASE WHEN l.oid IS NOT NULL THEN 'pg_catalog' END::name AS collation_schema,
         l.collname AS collation_name,
         CASE WHEN t.typtype = 'd' THEN current_database() END::name AS domain_catalog,
         CASE WHEN t.typtype = 'd' THEN tn.nspname END AS domain_schema,
         CASE WHEN t.typtype = 'd' THEN t.typname END AS domain_name,
         current_database()::name AS udt_catalog, un.nspname AS udt_schema, u.typname AS udt_name,
         NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
         NULL::int AS maximum_cardinality, a.attnum::text::name AS dtd_identifier,
         'NO'::varchar(3) AS is_self_referencing,
         CASE WHEN a.attidentity IN ('a', 'd') THEN 'YES' ELSE 'NO' END::varchar(3)
           AS is_identity,
         CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END::varchar
           AS identity_generation,
         s.seqstart::varchar AS identity_start, s.seqincrement::varchar AS identity_increment,
         s.seqmax::varchar AS identity_maximum, s.seqmin::varchar AS identity_minimum,
         CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END::varchar(3) AS identity_cycle,
         CASE WHEN a.attgenerated <> '' THEN 'ALWAYS' ELSE 'NEVER' END::varchar AS is_generated,
         CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) END::varchar
           AS generation_expression,
         CASE WHEN c.relkind IN ('r', 'p')
                OR c.relkind IN ('v', 'f') AND pg_column_is_updatable(c.oid, a.attnum, false)
              THEN 'YES' ELSE 'NO' END::varchar(3) AS is_updatable
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_namespace tn ON tn.oid = t.typnamespace
    JOIN pg_type u ON u.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
    JOIN pg_namespace un ON un.oid = u.typnamespace
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    LEFT JOIN pg_collation l ON l.oid = a.attcollation AND l.collname <> 'default'
    LEFT JOIN (pg_depend e JOIN pg_sequence s ON s.seqrelid = e.objid AND e.classid = 1259
          AND e.deptype = 'i')
      ON e.refclassid = 1259 AND e.refobjid = a.attrelid AND e.refobjsubid = a.attnum
   WHERE NOT pg_is_other_temp_schema(n.oid) AND a.attnum > 0 AND NOT a.attisdropped
     AND c.relkind IN ('r', 'v', 'f', 'p')
     AND (pg_has_role(c.relowner, 'USAGE')
          OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.table_constraints AS
  SELECT current_database()::name AS constraint_catalog, n.nspname AS constraint_schema,
         k.conname AS constraint_name, current_database()::name AS table_catalog,
         r.nspname AS table_schema, c.relname AS table_name,
         CASE k.contype WHEN 'c' THEN 'CHECK' WHEN 'f' THEN 'FOREIGN KEY' WHEN 'n' THEN 'CHECK'
              WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' END::varchar AS constraint_type,
         CASE WHEN k.condeferrable THEN 'YES' ELSE 'NO' END::varchar(3) AS is_deferrable,
         CASE WHEN k.condeferred THEN 'YES' ELSE 'NO' END::varchar(3) AS initially_deferred,
         CASE WHEN k.conenforced THEN 'YES' ELSE 'NO' END::varchar(3) AS enforced,
         CASE WHEN k.contype = 'u' THEN
           CASE WHEN (SELECT NOT x.indnullsnotdistinct FROM pg_index x
                       WHERE x.indexrelid = k.conindid) THEN 'YES' ELSE 'NO' END END::varchar(3)
           AS nulls_distinct
    FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace
    JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace r ON r.oid = c.relnamespace
   WHERE k.contype IN ('c', 'f', 'n', 'p', 'u') AND c.relkind IN ('r', 'p')
     AND NOT pg_is_other_temp_schema(r.oid)
     AND (pg_has_role(c.relowner, 'USAGE')
          OR has_table_privilege(c.oid,
               'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
          OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.key_column_usage AS
  SELECT current_database()::name AS constraint_catalog, n.nspname AS constraint_schema,
         k.conname AS constraint_name, current_database()::name AS table_catalog,
         r.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name,
         g.n AS ordinal_position,
         CASE WHEN k.contype = 'f' THEN array_position(x.indkey::int2[], k.confkey[g.n]) + 1
              END::int AS position_in_unique_constraint
    FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace
    JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace r ON r.oid = c.relnamespace
    JOIN generate_series(1, 32) g(n) ON g.n <= array_length(k.conkey, 1)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[g.n]
    LEFT JOIN pg_index x ON x.indexrelid = k.conindid
   WHERE k.contype IN ('p', 'u', 'f') AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
     AND NOT pg_is_other_temp_schema(r.oid)
     AND (pg_has_role(c.relowner, 'USAGE')
          OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.referential_constraints AS
  SELECT current_database()::name AS constraint_catalog, n.nspname AS constraint_schema,
         k.conname AS constraint_name,
         CASE WHEN q.oid IS NOT NULL THEN current_database() END::name
           AS unique_constraint_catalog,
         m.nspname AS unique_constraint_schema, q.conname AS unique_constraint_name,
         CASE k.confmatchtype WHEN 'f' THEN 'FULL' WHEN 'p' THEN 'PARTIAL' WHEN 's' THEN 'NONE'
              END::varchar AS match_option,
         CASE k.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL'
              WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' WHEN 'a' THEN 'NO ACTION'
              END::varchar AS update_rule,
         CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL'
              WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' WHEN 'a' THEN 'NO ACTION'
              END::varchar AS delete_rule
    FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace
    JOIN pg_class c ON c.oid = k.conrelid
    LEFT JOIN pg_constraint q ON q.conindid = k.conindid AND q.contype IN ('p', 'u')
          AND q.conrelid = k.confrelid
    LEFT JOIN pg_namespace m ON m.oid = q.connamespace
   WHERE k.contype = 'f'
     AND (pg_has_role(c.relowner, 'USAGE')
          OR has_table_privilege(c.oid,
               'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
          OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.constraint_column_usage AS
  SELECT current_database()::name AS table_catalog, r.nspname AS table_schema,
         c.relname AS table_name, a.attname AS column_name,
         current_database()::name AS constraint_catalog, n.nspname AS constraint_schema,
         k.conname AS constraint_name
    FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace
    JOIN pg_class c ON c.oid = CASE k.contype WHEN 'f' THEN k.confrelid ELSE k.conrelid END
    JOIN pg_namespace r ON r.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid
          AND a.attnum = ANY (CASE k.contype WHEN 'f' THEN k.confkey ELSE k.conkey END)
   WHERE k.contype IN ('c', 'n', 'p', 'u', 'f') AND c.relkind IN ('r', 'p')
     AND NOT a.attisdropped AND pg_has_role(c.relowner, 'USAGE');

CREATE VIEW information_schema.constraint_table_usage AS
  SELECT current_database()::name AS table_catalog, r.nspname AS table_schema,
         c.relname AS table_name, current_database()::name AS constraint_catalog,
         n.nspname AS constraint_schema, k.conname AS constraint_name
    FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace
    JOIN pg_class c ON c.oid = CASE k.contype WHEN 'f' THEN k.confrelid ELSE k.conrelid END
    JOIN pg_namespace r ON r.oid = c.relnamespace
   WHERE k.contype IN ('f', 'p', 'u') AND c.relkind IN ('r', 'p')
     AND pg_has_role(c.relowner, 'USAGE');

CREATE VIEW information_schema.check_constraints AS
  SELECT current_database()::name AS constraint_catalog, n.nspname AS constraint_schema,
         k.conname AS constraint_name,
         CASE k.contype
           WHEN 'n' THEN coalesce(quote_ident((SELECT a.attname FROM pg_attribute a
                           WHERE a.attrelid = k.conrelid AND a.attnum = k.conkey[1])), 'VALUE')
                         || ' IS NOT NULL'
           ELSE pg_get_expr(k.conbin, k.conrelid) END::varchar AS check_clause
    FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace
    LEFT JOIN pg_class c ON c.oid = k.conrelid
    LEFT JOIN pg_type t ON t.oid = k.contypid
   WHERE k.contype IN ('c', 'n') AND pg_has_role(coalesce(c.relowner, t.typowner), 'USAGE');

CREATE VIEW information_schema.views AS
  SELECT current_database()::name AS table_catalog, n.nspname AS table_schema,
         c.relname AS table_name,
         CASE WHEN pg_has_role(c.relowner, 'USAGE') THEN pg_get_viewdef(c.oid) END::varchar
           AS view_definition,
         CASE WHEN 'check_option=cascaded' = ANY (c.reloptions) THEN 'CASCADED'
              WHEN 'check_option=local' = ANY (c.reloptions) THEN 'LOCAL'
              ELSE 'NONE' END::varchar AS check_option,
         CASE WHEN pg_relation_is_updatable(c.oid, false) & 20 = 20 THEN 'YES' ELSE 'NO'
              END::varchar(3) AS is_updatable,
         CASE WHEN pg_relation_is_updatable(c.oid, false) & 8 = 8 THEN 'YES' ELSE 'NO'
              END::varchar(3) AS is_insertable_into,
         'NO'::varchar(3) AS is_trigger_updatable,
         'NO'::varchar(3) AS is_trigger_deletable, 'NO'::varchar(3) AS is_trigger_insertable_into
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind = 'v' AND NOT pg_is_other_temp_schema(n.oid)
     AND (pg_has_role(c.relowner, 'USAGE')
          OR has_table_privilege(c.oid,
               'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
          OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.sequences AS
  SELECT current_database()::name AS sequence_catalog, n.nspname AS sequence_schema,
         c.relname AS sequence_name, format_type(s.seqtypid, NULL)::varchar AS data_type,
         CASE s.seqtypid WHEN 21 THEN 16 WHEN 23 THEN 32 ELSE 64 END AS numeric_precision,
         2 AS numeric_precision_radix, 0 AS numeric_scale, s.seqstart::varchar AS start_value,
         s.seqmin::varchar AS minimum_value, s.seqmax::varchar AS maximum_value,
         s.seqincrement::varchar AS increment,
         CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END::varchar(3) AS cycle_option
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_sequence s ON s.seqrelid = c.oid
   WHERE c.relkind = 'S' AND NOT pg_is_other_temp_schema(n.oid)
     AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 1259 AND d.objid = c.oid
                        AND d.deptype = 'i')
     AND (pg_has_role(c.relowner, 'USAGE')
          OR has_sequence_privilege(c.oid, 'SELECT, UPDATE, USAGE'));

CREATE VIEW information_schema.character_sets AS
  SELECT NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
         'UTF8'::name AS character_set_name, 'UCS'::name AS character_repertoire,
         'UTF8'::name AS form_of_use, current_database()::name AS default_collate_catalog,
         'pg_catalog'::name AS default_collate_schema, 'C'::name AS default_collate_name;

CREATE VIEW information_schema.enabled_roles AS
  SELECT rolname AS role_name FROM pg_roles WHERE pg_has_role(oid, 'USAGE');

CREATE VIEW information_schema.table_privileges AS
  SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC')::name AS grantee,
         current_database()::name AS table_catalog, n.nspname AS table_schema,
         c.relname AS table_name, x.privilege_type::varchar AS privilege_type,
         CASE WHEN x.is_grantable OR x.grantee = c.relowner THEN 'YES' ELSE 'NO' END::varchar(3)
           AS is_grantable,
         CASE WHEN x.privilege_type = 'SELECT' THEN 'YES' ELSE 'NO' END::varchar(3)
           AS with_hierarchy
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
    JOIN pg_roles g ON g.oid = x.grantor
    LEFT JOIN pg_roles e ON e.oid = x.grantee
   WHERE c.relkind IN ('r', 'v', 'f', 'p')
     AND x.privilege_type IN
         ('INSERT', 'SELECT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER')
     AND (x.grantee = 0 OR pg_has_role(x.grantor, 'USAGE') OR pg_has_role(x.grantee, 'USAGE'));

CREATE VIEW information_schema.role_table_grants AS
  SELECT * FROM information_schema.table_privileges WHERE grantee <> 'PUBLIC';

CREATE VIEW information_schema.applicable_roles AS
  SELECT a.rolname AS grantee, b.rolname AS role_name,
         CASE WHEN m.admin_option THEN 'YES' ELSE 'NO' END::varchar(3) AS is_grantable
    FROM (SELECT member, roleid, admin_option FROM pg_auth_members
          UNION
          SELECT d.datdba, o.oid, false FROM pg_database d, pg_authid o
           WHERE d.datname = current_database() AND o.rolname = 'pg_database_owner') m
    JOIN pg_authid a ON m.member = a.oid
    JOIN pg_authid b ON m.roleid = b.oid
   WHERE pg_has_role(a.oid, 'USAGE');

CREATE VIEW information_schema.administrable_role_authorizations AS
  SELECT * FROM information_schema.applicable_roles WHERE is_grantable = 'YES';

CREATE VIEW information_schema.collations AS
  SELECT current_database()::name AS collation_catalog, n.nspname AS collation_schema,
         c.collname AS collation_name, 'NO PAD'::varchar AS pad_attribute
    FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
   WHERE c.collencoding IN (-1, 6);

CREATE VIEW information_schema.collation_character_set_applicability AS
  SELECT collation_catalog, collation_schema, collation_name,
         NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
         'UTF8'::name AS character_set_name
    FROM information_schema.collations;

-- Privileges on columns are those on their tables, and their own.
CREATE VIEW information_schema.column_privileges AS
  SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC')::name AS grantee,
         current_database()::name AS table_catalog, n.nspname AS table_schema,
         c.relname AS table_name, x.attname AS column_name,
         x.privilege_type::varchar AS privilege_type,
         CASE WHEN x.is_grantable OR x.grantee <> 0 AND pg_has_role(x.grantee, c.relowner, 'USAGE')
              THEN 'YES' ELSE 'NO' END::varchar(3) AS is_grantable
    FROM (SELECT a.attrelid, a.attname, x.*
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
           CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
           WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p')
          UNION
          SELECT a.attrelid, a.attname, x.*
            FROM pg_attribute a CROSS JOIN LATERAL aclexplode(a.attacl) x
           WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attacl IS NOT NULL) x
    JOIN pg_class c ON c.oid = x.attrelid AND c.relkind IN ('r', 'v', 'f', 'p')
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_authid g ON g.oid = x.grantor
    LEFT JOIN pg_authid e ON e.oid = x.grantee
   WHERE x.privilege_type IN ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES')
     AND (x.grantee = 0 OR pg_has_role(x.grantor, 'USAGE') OR pg_has_role(x.grantee, 'USAGE'));

CREATE VIEW information_schema.role_column_grants AS
  SELECT * FROM information_schema.column_privileges
   WHERE grantor IN (SELECT role_name FROM information_schema.enabled_roles)
      OR grantee IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.column_udt_usage AS
  SELECT udt_catalog, udt_schema, udt_name, table_catalog, table_schema, table_name, column_name
    FROM information_schema.columns
   WHERE pg_has_role((SELECT t.typowner FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
                       WHERE t.typname = udt_name AND n.nspname = udt_schema), 'USAGE');

CREATE VIEW information_schema.view_table_usage AS
  SELECT DISTINCT current_database()::name AS view_catalog, nv.nspname AS view_schema,
         v.relname AS view_name, current_database()::name AS table_catalog,
         nt.nspname AS table_schema, t.relname AS table_name
    FROM pg_class v
    JOIN pg_namespace nv ON nv.oid = v.relnamespace
    JOIN pg_rewrite r ON r.ev_class = v.oid
    JOIN pg_depend d ON d.classid = 2618 AND d.objid = r.oid AND d.refclassid = 1259
         AND d.refobjid <> v.oid
    JOIN pg_class t ON t.oid = d.refobjid
    JOIN pg_namespace nt ON nt.oid = t.relnamespace
   WHERE v.relkind = 'v' AND t.relkind IN ('r', 'v', 'f', 'p') AND pg_has_role(t.relowner, 'USAGE');

CREATE VIEW information_schema.view_column_usage AS
  SELECT DISTINCT current_database()::name AS view_catalog, nv.nspname AS view_schema,
         v.relname AS view_name, current_database()::name AS table_catalog,
         nt.nspname AS table_schema, t.relname AS table_name, a.attname AS column_name
    FROM pg_class v
    JOIN pg_namespace nv ON nv.oid = v.relnamespace
    JOIN pg_rewrite r ON r.ev_class = v.oid
    JOIN pg_depend d ON d.classid = 2618 AND d.objid = r.oid AND d.refclassid = 1259
         AND d.refobjid <> v.oid
    JOIN pg_class t ON t.oid = d.refobjid
    JOIN pg_namespace nt ON nt.oid = t.relnamespace
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
   WHERE v.relkind = 'v' AND t.relkind IN ('r', 'v', 'f', 'p') AND pg_has_role(t.relowner, 'USAGE');

CREATE VIEW information_schema.usage_privileges AS
  SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC')::name AS grantee,
         current_database()::name AS object_catalog, n.nspname AS object_schema,
         c.relname AS object_name, 'SEQUENCE'::varchar AS object_type,
         'USAGE'::varchar AS privilege_type,
         CASE WHEN x.is_grantable OR x.grantee = c.relowner THEN 'YES' ELSE 'NO' END::varchar(3)
           AS is_grantable
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('s', c.relowner))) x
    JOIN pg_roles g ON g.oid = x.grantor
    LEFT JOIN pg_roles e ON e.oid = x.grantee
   WHERE c.relkind = 'S' AND x.privilege_type = 'USAGE'
     AND (x.grantee = 0 OR pg_has_role(x.grantor, 'USAGE') OR pg_has_role(x.grantee, 'USAGE'));

CREATE VIEW information_schema.role_usage_grants AS
  SELECT * FROM information_schema.usage_privileges WHERE grantee <> 'PUBLIC';

CREATE VIEW information_schema.domains AS
  SELECT current_database()::name AS domain_catalog, n.nspname AS domain_schema,
         t.typname AS domain_name,
         CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY'
              WHEN un.nspname = 'pg_catalog' THEN format_type(u.oid, NULL)
              ELSE 'USER-DEFINED' END::varchar AS data_type,
         CASE WHEN u.oid IN (1042, 1043) AND t.typtypmod >= 0 THEN t.typtypmod - 4
              WHEN u.oid IN (1560, 1562) AND t.typtypmod >= 0 THEN t.typtypmod END
           AS character_maximum_length,
         CASE WHEN u.oid = 25 THEN 1073741824
              WHEN u.oid IN (1042, 1043) THEN
                CASE WHEN t.typtypmod < 0 THEN 1073741824 ELSE (t.typtypmod - 4) * 4 END END
           AS character_octet_length,
         NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
         NULL::name AS character_set_name,
         CASE WHEN l.oid IS NOT NULL THEN current_database() END::name AS collation_catalog,
         CASE WHEN l.oid IS NOT NULL THEN 'pg_catalog' END::name AS collation_schema,
         l.collname AS collation_name,
         CASE u.oid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24
              WHEN 701 THEN 53
              WHEN 1700 THEN
                CASE WHEN t.typtypmod >= 0 THEN ((t.typtypmod - 4) >> 16) & 65535 END END
           AS numeric_precision,
         CASE WHEN u.oid IN (20, 21, 23, 700, 701) THEN 2 WHEN u.oid = 1700 THEN 10 END
           AS numeric_precision_radix,
         CASE WHEN u.oid IN (20, 21, 23) THEN 0
              WHEN u.oid = 1700 AND t.typtypmod >= 0 THEN (t.typtypmod - 4) & 65535 END
           AS numeric_scale,
         CASE WHEN u.oid = 1082 THEN 0
              WHEN u.oid IN (1083, 1114, 1184, 1266) THEN
                CASE WHEN t.typtypmod < 0 THEN 6 ELSE t.typtypmod END
              WHEN u.oid = 1186 THEN
                CASE WHEN t.typtypmod < 0 OR t.typtypmod & 65535 = 65535 THEN 6
                     ELSE t.typtypmod & 65535 END END AS datetime_precision,
         NULL::varchar AS interval_type, NULL::int AS interval_precision,
         t.typdefault::varchar AS domain_default, current_database()::name AS udt_catalog,
         un.nspname AS udt_schema, u.typname AS udt_name, NULL::name AS scope_catalog,
         NULL::name AS scope_schema, NULL::name AS scope_name, NULL::int AS maximum_cardinality,
         '1'::name AS dtd_identifier
    FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    JOIN pg_type u ON u.oid = t.typbasetype
    JOIN pg_namespace un ON un.oid = u.typnamespace
    LEFT JOIN pg_collation l ON l.oid = t.typcollation AND l.collname <> 'default'
   WHERE t.typtype = 'd';

CREATE VIEW information_schema.domain_constraints AS
  SELECT current_database()::name AS constraint_catalog, r.nspname AS constraint_schema,
         k.conname AS constraint_name, current_database()::name AS domain_catalog,
         n.nspname AS domain_schema, t.typname AS domain_name,
         CASE WHEN k.condeferrable THEN 'YES' ELSE 'NO' END::varchar(3) AS is_deferrable,
         CASE WHEN k.condeferred THEN 'YES' ELSE 'NO' END::varchar(3) AS initially_deferred
    FROM pg_constraint k
    JOIN pg_namespace r ON r.oid = k.connamespace
    JOIN pg_type t ON t.oid = k.contypid
    JOIN pg_namespace n ON n.oid = t.typnamespace;

CREATE VIEW information_schema.column_domain_usage AS
  SELECT current_database()::name AS domain_catalog, tn.nspname AS domain_schema,
         t.typname AS domain_name, current_database()::name AS table_catalog,
         n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name
    FROM pg_type t
    JOIN pg_namespace tn ON tn.oid = t.typnamespace
    JOIN pg_attribute a ON a.atttypid = t.oid
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE t.typtype = 'd' AND c.relkind IN ('r', 'v', 'f', 'p') AND a.attnum > 0
     AND NOT a.attisdropped AND pg_has_role(t.typowner, 'USAGE');

CREATE VIEW information_schema.domain_udt_usage AS
  SELECT current_database()::name AS udt_catalog, un.nspname AS udt_schema, u.typname AS udt_name,
         current_database()::name AS domain_catalog, n.nspname AS domain_schema,
         t.typname AS domain_name
    FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    JOIN pg_type u ON u.oid = t.typbasetype
    JOIN pg_namespace un ON un.oid = u.typnamespace
   WHERE t.typtype = 'd' AND pg_has_role(u.typowner, 'USAGE');

-- There are none of these here.

CREATE VIEW information_schema.check_constraint_routine_usage AS
  SELECT NULL::name AS constraint_catalog, NULL::name AS constraint_schema,
         NULL::name AS constraint_name, NULL::name AS specific_catalog,
         NULL::name AS specific_schema, NULL::name AS specific_name WHERE false;

CREATE VIEW information_schema.column_options AS
  SELECT NULL::name AS table_catalog, NULL::name AS table_schema, NULL::name AS table_name,
         NULL::name AS column_name, NULL::name AS option_name, NULL::varchar AS option_value WHERE false;

CREATE VIEW information_schema.foreign_data_wrapper_options AS
  SELECT NULL::name AS foreign_data_wrapper_catalog, NULL::name AS foreign_data_wrapper_name,
         NULL::name AS option_name, NULL::varchar AS option_value WHERE false;

CREATE VIEW information_schema.foreign_data_wrappers AS
  SELECT NULL::name AS foreign_data_wrapper_catalog, NULL::name AS foreign_data_wrapper_name,
         NULL::name AS authorization_identifier, NULL::varchar AS library_name,
         NULL::varchar AS foreign_data_wrapper_language WHERE false;

CREATE VIEW information_schema.foreign_server_options AS
  SELECT NULL::name AS foreign_server_catalog, NULL::name AS foreign_server_name,
         NULL::name AS option_name, NULL::varchar AS option_value WHERE false;

CREATE VIEW information_schema.foreign_servers AS
  SELECT NULL::name AS foreign_server_catalog, NULL::name AS foreign_server_name,
         NULL::name AS foreign_data_wrapper_catalog, NULL::name AS foreign_data_wrapper_name,
         NULL::varchar AS foreign_server_type, NULL::varchar AS foreign_server_version,
         NULL::name AS authorization_identifier WHERE false;

CREATE VIEW information_schema.foreign_table_options AS
  SELECT NULL::name AS foreign_table_catalog, NULL::name AS foreign_table_schema,
         NULL::name AS foreign_table_name, NULL::name AS option_name,
         NULL::varchar AS option_value WHERE false;

CREATE VIEW information_schema.foreign_tables AS
  SELECT NULL::name AS foreign_table_catalog, NULL::name AS foreign_table_schema,
         NULL::name AS foreign_table_name, NULL::name AS foreign_server_catalog,
         NULL::name AS foreign_server_name WHERE false;

CREATE VIEW information_schema.routine_column_usage AS
  SELECT NULL::name AS specific_catalog, NULL::name AS specific_schema,
         NULL::name AS specific_name, NULL::name AS routine_catalog,
         NULL::name AS routine_schema, NULL::name AS routine_name, NULL::name AS table_catalog,
         NULL::name AS table_schema, NULL::name AS table_name, NULL::name AS column_name WHERE false;

CREATE VIEW information_schema.routine_routine_usage AS
  SELECT NULL::name AS specific_catalog, NULL::name AS specific_schema,
         NULL::name AS specific_name, NULL::name AS routine_catalog,
         NULL::name AS routine_schema, NULL::name AS routine_name WHERE false;

CREATE VIEW information_schema.routine_sequence_usage AS
  SELECT NULL::name AS specific_catalog, NULL::name AS specific_schema,
         NULL::name AS specific_name, NULL::name AS routine_catalog,
         NULL::name AS routine_schema, NULL::name AS routine_name,
         NULL::name AS sequence_catalog, NULL::name AS sequence_schema,
         NULL::name AS sequence_name WHERE false;

CREATE VIEW information_schema.routine_table_usage AS
  SELECT NULL::name AS specific_catalog, NULL::name AS specific_schema,
         NULL::name AS specific_name, NULL::name AS routine_catalog,
         NULL::name AS routine_schema, NULL::name AS routine_name, NULL::name AS table_catalog,
         NULL::name AS table_schema, NULL::name AS table_name WHERE false;

CREATE VIEW information_schema.transforms AS
  SELECT NULL::name AS udt_catalog, NULL::name AS udt_schema, NULL::name AS udt_name,
         NULL::name AS specific_catalog, NULL::name AS specific_schema,
         NULL::name AS specific_name, NULL::name AS group_name,
         NULL::varchar AS transform_type WHERE false;

CREATE VIEW information_schema.triggered_update_columns AS
  SELECT NULL::name AS trigger_catalog, NULL::name AS trigger_schema,
         NULL::name AS trigger_name, NULL::name AS event_object_catalog,
         NULL::name AS event_object_schema, NULL::name AS event_object_table,
         NULL::name AS event_object_column WHERE false;

CREATE VIEW information_schema.triggers AS
  SELECT NULL::name AS trigger_catalog, NULL::name AS trigger_schema,
         NULL::name AS trigger_name, NULL::varchar AS event_manipulation,
         NULL::name AS event_object_catalog, NULL::name AS event_object_schema,
         NULL::name AS event_object_table, NULL::int AS action_order,
         NULL::varchar AS action_condition, NULL::varchar AS action_statement,
         NULL::varchar AS action_orientation, NULL::varchar AS action_timing,
         NULL::name AS action_reference_old_table, NULL::name AS action_reference_new_table,
         NULL::name AS action_reference_old_row, NULL::name AS action_reference_new_row,
         NULL::timestamptz AS created WHERE false;

CREATE VIEW information_schema.user_mapping_options AS
  SELECT NULL::name AS authorization_identifier, NULL::name AS foreign_server_catalog,
         NULL::name AS foreign_server_name, NULL::name AS option_name,
         NULL::varchar AS option_value WHERE false;

CREATE VIEW information_schema.user_mappings AS
  SELECT NULL::name AS authorization_identifier, NULL::name AS foreign_server_catalog,
         NULL::name AS foreign_server_name WHERE false;

CREATE VIEW information_schema.view_routine_usage AS
  SELECT NULL::name AS table_catalog, NULL::name AS table_schema, NULL::name AS table_name,
         NULL::name AS specific_catalog, NULL::name AS specific_schema,
         NULL::name AS specific_name WHERE false;

CREATE VIEW information_schema.user_defined_types AS
  SELECT current_database()::name AS user_defined_type_catalog,
         n.nspname AS user_defined_type_schema, c.relname AS user_defined_type_name,
         'STRUCTURED'::varchar AS user_defined_type_category, 'YES'::varchar(3) AS is_instantiable,
         NULL::varchar(3) AS is_final, NULL::varchar AS ordering_form,
         NULL::varchar AS ordering_category, NULL::name AS ordering_routine_catalog,
         NULL::name AS ordering_routine_schema, NULL::name AS ordering_routine_name,
         NULL::varchar AS reference_type, NULL::varchar AS data_type,
         NULL::int AS character_maximum_length, NULL::int AS character_octet_length,
         NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
         NULL::name AS character_set_name, NULL::name AS collation_catalog,
         NULL::name AS collation_schema, NULL::name AS collation_name,
         NULL::int AS numeric_precision, NULL::int AS numeric_precision_radix,
         NULL::int AS numeric_scale, NULL::int AS datetime_precision,
         NULL::varchar AS interval_type, NULL::int AS interval_precision,
         NULL::name AS source_dtd_identifier, NULL::name AS ref_dtd_identifier
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.typrelid = c.oid
   WHERE c.relkind = 'c'
     AND (pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE'));

CREATE VIEW information_schema.attributes AS
  SELECT current_database()::name AS udt_catalog, n.nspname AS udt_schema, c.relname AS udt_name,
         a.attname AS attribute_name, a.attnum::int AS ordinal_position,
         NULL::varchar AS attribute_default,
         CASE WHEN t.typtype = 'd' AND t.typnotnull THEN 'NO' ELSE 'YES' END::varchar(3)
           AS is_nullable,
         CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY'
              WHEN tn.nspname = 'pg_catalog' THEN format_type(t.oid, NULL)
              ELSE 'USER-DEFINED' END::varchar AS data_type,
         CASE WHEN y.type IN (1042, 1043) AND y.mod >= 0 THEN y.mod - 4
              WHEN y.type IN (1560, 1562) AND y.mod >= 0 THEN y.mod END
           AS character_maximum_length,
         CASE WHEN y.type = 25 THEN 1073741824
              WHEN y.type IN (1042, 1043) THEN
                CASE WHEN y.mod < 0 THEN 1073741824 ELSE (y.mod - 4) * 4 END END
           AS character_octet_length,
         NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
         NULL::name AS character_set_name,
         CASE WHEN l.oid IS NOT NULL THEN current_database() END::name AS collation_catalog,
         CASE WHEN l.oid IS NOT NULL THEN 'pg_catalog' END::name AS collation_schema,
         l.collname AS collation_name,
         CASE y.type WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24
              WHEN 701 THEN 53
              WHEN 1700 THEN CASE WHEN y.mod >= 0 THEN ((y.mod - 4) >> 16) & 65535 END END
           AS numeric_precision,
         CASE WHEN y.type IN (20, 21, 23, 700, 701) THEN 2 WHEN y.type = 1700 THEN 10 END
           AS numeric_precision_radix,
         CASE WHEN y.type IN (20, 21, 23) THEN 0
              WHEN y.type = 1700 AND y.mod >= 0 THEN (y.mod - 4) & 65535 END
           AS numeric_scale,
         CASE WHEN y.type = 1082 THEN 0
              WHEN y.type IN (1083, 1114, 1184, 1266) THEN
                CASE WHEN y.mod < 0 THEN 6 ELSE y.mod END
              WHEN y.type = 1186 THEN
                CASE WHEN y.mod < 0 OR y.mod & 65535 = 65535 THEN 6 ELSE y.mod & 65535 END END
           AS datetime_precision,
         NULL::varchar AS interval_type, NULL::int AS interval_precision,
         current_database()::name AS attribute_udt_catalog, tn.nspname AS attribute_udt_schema,
         t.typname AS attribute_udt_name, NULL::name AS scope_catalog,
         NULL::name AS scope_schema, NULL::name AS scope_name, NULL::int AS maximum_cardinality,
         a.attnum::text::name AS dtd_identifier,
         'NO'::varchar(3) AS is_derived_reference_attribute
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_namespace tn ON tn.oid = t.typnamespace
    CROSS JOIN LATERAL (SELECT CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END,
                               CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE a.atttypmod END)
      y (type, mod)
    LEFT JOIN pg_collation l ON l.oid = a.attcollation AND l.collname <> 'default'
   WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'c'
     AND (pg_has_role(c.relowner, 'USAGE') OR has_type_privilege(c.reltype, 'USAGE'));

CREATE VIEW information_schema.column_column_usage AS
  SELECT DISTINCT current_database()::name AS table_catalog, n.nspname AS table_schema,
         c.relname AS table_name, o.attname AS column_name, g.attname AS dependent_column
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute g ON g.attrelid = c.oid AND g.attgenerated <> ''
    JOIN pg_attrdef f ON f.adrelid = c.oid AND f.adnum = g.attnum
    JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
    JOIN pg_attribute o ON o.attrelid = c.oid AND o.attnum = d.refobjsubid
   WHERE o.attnum <> g.attnum AND pg_has_role(c.relowner, 'USAGE');

CREATE VIEW information_schema.element_types AS
  SELECT current_database()::name AS object_catalog, x.object_schema, x.object_name,
         x.object_type::varchar AS object_type, x.part AS collection_type_identifier,
         CASE WHEN n.nspname = 'pg_catalog' THEN format_type(e.oid, NULL)
              ELSE 'USER-DEFINED' END::varchar AS data_type,
         NULL::int AS character_maximum_length, NULL::int AS character_octet_length,
         NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
         NULL::name AS character_set_name, NULL::name AS collation_catalog,
         NULL::name AS collation_schema, NULL::name AS collation_name,
         NULL::int AS numeric_precision, NULL::int AS numeric_precision_radix,
         NULL::int AS numeric_scale, NULL::int AS datetime_precision,
         NULL::varchar AS interval_type, NULL::int AS interval_precision,
         current_database()::name AS udt_catalog, n.nspname AS udt_schema, e.typname AS udt_name,
         NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
         NULL::int AS maximum_cardinality, ('a' || x.part)::name AS dtd_identifier
    FROM (SELECT cn.nspname AS object_schema, c.relname AS object_name,
                 CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'c' THEN 'USER-DEFINED TYPE' ELSE 'TABLE' END
                   AS object_type,
                 a.attnum::text::name AS part, a.atttypid AS type, c.relowner AS owner
            FROM pg_attribute a
            JOIN pg_class c ON c.oid = a.attrelid
            JOIN pg_namespace cn ON cn.oid = c.relnamespace
           WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p', 'c')
          UNION ALL
          SELECT dn.nspname, d.typname, 'DOMAIN', '1', d.typbasetype, d.typowner
            FROM pg_type d JOIN pg_namespace dn ON dn.oid = d.typnamespace
           WHERE d.typtype = 'd') x
    JOIN pg_type t ON t.oid = x.type
    JOIN pg_type e ON e.oid = t.typelem
    JOIN pg_namespace n ON n.oid = e.typnamespace
   WHERE t.typlen = -1 AND t.typcategory = 'A'
     AND (pg_has_role(x.owner, 'USAGE')
          OR has_table_privilege((quote_ident(x.object_schema) || '.' || quote_ident(x.object_name)),
                                 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.udt_privileges AS
  SELECT g.rolname AS grantor, coalesce(e.rolname, 'PUBLIC')::name AS grantee,
         current_database()::name AS udt_catalog, n.nspname AS udt_schema,
         t.typname AS udt_name, 'TYPE USAGE'::varchar AS privilege_type,
         CASE WHEN x.is_grantable OR x.grantee = t.typowner THEN 'YES' ELSE 'NO' END::varchar(3)
           AS is_grantable
    FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    CROSS JOIN LATERAL aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) x
    JOIN pg_roles g ON g.oid = x.grantor
    LEFT JOIN pg_roles e ON e.oid = x.grantee
   WHERE t.typtype = 'c' AND x.privilege_type = 'USAGE'
     AND (x.grantee = 0 OR pg_has_role(x.grantor, 'USAGE') OR pg_has_role(x.grantee, 'USAGE'));

CREATE VIEW information_schema.role_udt_grants AS
  SELECT * FROM information_schema.udt_privileges WHERE grantee <> 'PUBLIC';

CREATE VIEW information_schema.data_type_privileges AS
  SELECT current_database()::name AS object_catalog, x.object_schema, x.object_name,
         x.object_type::varchar AS object_type, x.dtd_identifier::name AS dtd_identifier
    FROM (SELECT table_schema, table_name, 'TABLE', dtd_identifier
            FROM information_schema.columns
          UNION ALL
          SELECT domain_schema, domain_name, 'DOMAIN', dtd_identifier
            FROM information_schema.domains
          UNION ALL
          SELECT udt_schema, udt_name, 'USER-DEFINED TYPE', dtd_identifier
            FROM information_schema.attributes)
         x (object_schema, object_name, object_type, dtd_identifier);
