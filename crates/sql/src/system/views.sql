-- The system views: PostgreSQL 18's names and columns. Run once, by init, as the superuser, with
-- search_path = pg_catalog.

-- Roles.
CREATE VIEW pg_catalog.pg_roles AS
  SELECT a.rolname, a.rolsuper, a.rolinherit, a.rolcreaterole, a.rolcreatedb, a.rolcanlogin,
         a.rolreplication, a.rolconnlimit, '********'::text AS rolpassword, a.rolvaliduntil,
         a.rolbypassrls, s.setconfig AS rolconfig, a.oid
    FROM pg_authid a LEFT JOIN pg_db_role_setting s ON s.setrole = a.oid AND s.setdatabase = 0;

CREATE VIEW pg_catalog.pg_shadow AS
  SELECT a.rolname AS usename, a.oid AS usesysid, a.rolcreatedb AS usecreatedb,
         a.rolsuper AS usesuper, a.rolreplication AS userepl, a.rolbypassrls AS usebypassrls,
         a.rolpassword AS passwd, a.rolvaliduntil AS valuntil, s.setconfig AS useconfig
    FROM pg_authid a LEFT JOIN pg_db_role_setting s ON s.setrole = a.oid AND s.setdatabase = 0
   WHERE a.rolcanlogin;

CREATE VIEW pg_catalog.pg_user AS
  SELECT usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls,
         '********'::text AS passwd, valuntil, useconfig
    FROM pg_shadow;

CREATE VIEW pg_catalog.pg_group AS
  SELECT a.rolname AS groname, a.oid AS grosysid,
         ARRAY(SELECT m.member FROM pg_auth_members m WHERE m.roleid = a.oid) AS grolist
    FROM pg_authid a WHERE NOT a.rolcanlogin;

-- Relations.
CREATE VIEW pg_catalog.pg_tables AS
  SELECT n.nspname AS schemaname, c.relname AS tablename, pg_get_userbyid(c.relowner) AS tableowner,
         t.spcname AS tablespace, c.relhasindex AS hasindexes, c.relhasrules AS hasrules,
         c.relhastriggers AS hastriggers, c.relrowsecurity AS rowsecurity
    FROM pg_class c
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
   WHERE c.relkind IN ('r', 'p');

CREATE VIEW pg_catalog.pg_views AS
  SELECT n.nspname AS schemaname, c.relname AS viewname, pg_get_userbyid(c.relowner) AS viewowner,
         pg_get_viewdef(c.oid) AS definition
    FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind = 'v';

CREATE VIEW pg_catalog.pg_matviews AS
  SELECT n.nspname AS schemaname, c.relname AS matviewname,
         pg_get_userbyid(c.relowner) AS matviewowner, t.spcname AS tablespace,
         c.relhasindex AS hasindexes, c.relispopulated AS ispopulated,
         pg_get_viewdef(c.oid) AS definition
    FROM pg_class c
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace
   WHERE c.relkind = 'm';

CREATE VIEW pg_catalog.pg_rules AS
  SELECT n.nspname AS schemaname, c.relname AS tablename, r.rulename,
         pg_get_ruledef(r.oid) AS definition
    FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE r.rulename <> '_RETURN';

CREATE VIEW pg_catalog.pg_indexes AS
  SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname,
         t.spcname AS tablespace, pg_get_indexdef(i.oid) AS indexdef
    FROM pg_index x
    JOIN pg_class c ON c.oid = x.indrelid
    JOIN pg_class i ON i.oid = x.indexrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_tablespace t ON t.oid = i.reltablespace
   WHERE c.relkind IN ('r', 'm', 'p') AND i.relkind IN ('i', 'I');

CREATE VIEW pg_catalog.pg_sequences AS
  SELECT n.nspname AS schemaname, c.relname AS sequencename,
         pg_get_userbyid(c.relowner) AS sequenceowner, s.seqtypid::regtype AS data_type,
         s.seqstart AS start_value, s.seqmin AS min_value, s.seqmax AS max_value,
         s.seqincrement AS increment_by, s.seqcycle AS cycle, s.seqcache AS cache_size,
         CASE WHEN has_sequence_privilege(c.oid, 'SELECT,USAGE')
              THEN pg_sequence_last_value(c.oid::regclass) END AS last_value
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind = 'S';

CREATE VIEW pg_catalog.pg_policies AS
  SELECT n.nspname AS schemaname, c.relname AS tablename, p.polname AS policyname,
         CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END AS permissive,
         ARRAY(SELECT a.rolname FROM pg_authid a WHERE a.oid = ANY (p.polroles)) AS roles,
         CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
                       WHEN 'd' THEN 'DELETE' ELSE 'ALL' END AS cmd,
         pg_get_expr(p.polqual, p.polrelid) AS qual,
         pg_get_expr(p.polwithcheck, p.polrelid) AS with_check
    FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace;

CREATE VIEW pg_catalog.pg_seclabels AS
  SELECT l.objoid, l.classoid, l.objsubid, NULL::text AS objtype, NULL::oid AS objnamespace,
         NULL::text AS objname, l.provider, l.label
    FROM pg_seclabel l;

CREATE VIEW pg_catalog.pg_stats AS
  SELECT n.nspname AS schemaname, c.relname AS tablename, a.attname, s.stainherit AS inherited,
         s.stanullfrac AS null_frac, s.stawidth AS avg_width, s.stadistinct AS n_distinct,
         CASE 1 WHEN s.stakind1 THEN s.stavalues1 WHEN s.stakind2 THEN s.stavalues2
                WHEN s.stakind3 THEN s.stavalues3 WHEN s.stakind4 THEN s.stavalues4
                WHEN s.stakind5 THEN s.stavalues5 END AS most_common_vals,
         CASE 1 WHEN s.stakind1 THEN s.stanumbers1 WHEN s.stakind2 THEN s.stanumbers2
                WHEN s.stakind3 THEN s.stanumbers3 WHEN s.stakind4 THEN s.stanumbers4
                WHEN s.stakind5 THEN s.stanumbers5 END AS most_common_freqs,
         CASE 2 WHEN s.stakind1 THEN s.stavalues1 WHEN s.stakind2 THEN s.stavalues2
                WHEN s.stakind3 THEN s.stavalues3 WHEN s.stakind4 THEN s.stavalues4
                WHEN s.stakind5 THEN s.stavalues5 END AS histogram_bounds,
         CASE 3 WHEN s.stakind1 THEN s.stanumbers1[1] WHEN s.stakind2 THEN s.stanumbers2[1]
                WHEN s.stakind3 THEN s.stanumbers3[1] WHEN s.stakind4 THEN s.stanumbers4[1]
                WHEN s.stakind5 THEN s.stanumbers5[1] END AS correlation,
         CASE 4 WHEN s.stakind1 THEN s.stavalues1 WHEN s.stakind2 THEN s.stavalues2
                WHEN s.stakind3 THEN s.stavalues3 WHEN s.stakind4 THEN s.stavalues4
                WHEN s.stakind5 THEN s.stavalues5 END AS most_common_elems,
         CASE 4 WHEN s.stakind1 THEN s.stanumbers1 WHEN s.stakind2 THEN s.stanumbers2
                WHEN s.stakind3 THEN s.stanumbers3 WHEN s.stakind4 THEN s.stanumbers4
                WHEN s.stakind5 THEN s.stanumbers5 END AS most_common_elem_freqs,
         NULL::real[] AS elem_count_histogram,
         CASE 6 WHEN s.stakind1 THEN s.stavalues1 WHEN s.stakind2 THEN s.stavalues2
                WHEN s.stakind3 THEN s.stavalues3 WHEN s.stakind4 THEN s.stavalues4
                WHEN s.stakind5 THEN s.stavalues5 END AS range_length_histogram,
         NULL::real AS range_empty_frac,
         CASE 7 WHEN s.stakind1 THEN s.stavalues1 WHEN s.stakind2 THEN s.stavalues2
                WHEN s.stakind3 THEN s.stavalues3 WHEN s.stakind4 THEN s.stavalues4
                WHEN s.stakind5 THEN s.stavalues5 END AS range_bounds_histogram
    FROM pg_statistic s
    JOIN pg_class c ON c.oid = s.starelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = s.staattnum
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE NOT a.attisdropped AND has_column_privilege(c.oid, a.attnum, 'select');

-- Extended statistics.
CREATE VIEW pg_catalog.pg_stats_ext AS
  SELECT cn.nspname AS schemaname, c.relname AS tablename, sn.nspname AS statistics_schemaname,
         s.stxname AS statistics_name, pg_get_userbyid(s.stxowner) AS statistics_owner,
         (SELECT array_agg(a.attname ORDER BY a.attnum)
            FROM unnest(s.stxkeys) k JOIN pg_attribute a ON a.attrelid = s.stxrelid AND a.attnum = k) AS attnames,
         pg_get_statisticsobjdef_expressions(s.oid) AS exprs, s.stxkind AS kinds, sd.stxdinherit AS inherited,
         sd.stxdndistinct AS n_distinct, sd.stxddependencies AS dependencies,
         m.most_common_vals, m.most_common_val_nulls, m.most_common_freqs, m.most_common_base_freqs
    FROM pg_statistic_ext s
    JOIN pg_class c ON c.oid = s.stxrelid
    JOIN pg_statistic_ext_data sd ON sd.stxoid = s.oid
    LEFT JOIN pg_namespace cn ON cn.oid = c.relnamespace
    LEFT JOIN pg_namespace sn ON sn.oid = s.stxnamespace
    LEFT JOIN LATERAL (SELECT array_agg(i.values) AS most_common_vals, array_agg(i.nulls) AS most_common_val_nulls,
                              array_agg(i.frequency) AS most_common_freqs,
                              array_agg(i.base_frequency) AS most_common_base_freqs
                         FROM pg_mcv_list_items(sd.stxdmcv) i) m ON sd.stxdmcv IS NOT NULL
   WHERE pg_has_role(c.relowner, 'USAGE');

CREATE VIEW pg_catalog.pg_stats_ext_exprs AS
  SELECT cn.nspname AS schemaname, c.relname AS tablename, sn.nspname AS statistics_schemaname,
         s.stxname AS statistics_name, pg_get_userbyid(s.stxowner) AS statistics_owner,
         st.expr, sd.stxdinherit AS inherited, st.null_frac, st.avg_width, st.n_distinct,
         st.most_common_vals, st.most_common_freqs, st.histogram_bounds, st.correlation,
         st.most_common_elems, NULL::real[] AS most_common_elem_freqs,
         NULL::real[] AS elem_count_histogram
    FROM pg_statistic_ext s
    JOIN pg_class c ON c.oid = s.stxrelid
    JOIN pg_statistic_ext_data sd ON sd.stxoid = s.oid
    LEFT JOIN pg_namespace cn ON cn.oid = c.relnamespace
    LEFT JOIN pg_namespace sn ON sn.oid = s.stxnamespace
    JOIN LATERAL _ebb_expression_statistics(s.oid) st ON sd.stxdexpr IS NOT NULL
   WHERE pg_has_role(c.relowner, 'USAGE');

-- Settings.
CREATE VIEW pg_catalog.pg_settings AS SELECT * FROM pg_show_all_settings();
CREATE VIEW pg_catalog.pg_file_settings AS SELECT * FROM pg_show_all_file_settings();
CREATE VIEW pg_catalog.pg_timezone_names AS SELECT * FROM pg_timezone_names();

-- Extensions.
CREATE VIEW pg_catalog.pg_available_extensions AS
  SELECT e.name, e.default_version, x.extversion AS installed_version, e.comment
    FROM pg_available_extensions() e LEFT JOIN pg_extension x ON x.extname = e.name;

CREATE VIEW pg_catalog.pg_available_extension_versions AS
  SELECT e.name, e.version, x.extname IS NOT NULL AS installed, e.superuser, e.trusted, e.relocatable, e.schema, e.requires, e.comment
    FROM pg_available_extension_versions() e LEFT JOIN pg_extension x ON x.extname = e.name AND x.extversion = e.version;

-- Sessions and locks.
CREATE VIEW pg_catalog.pg_locks AS SELECT * FROM pg_lock_status();
CREATE VIEW pg_catalog.pg_cursors AS SELECT * FROM pg_cursor();
CREATE VIEW pg_catalog.pg_prepared_statements AS SELECT * FROM pg_prepared_statement();

CREATE VIEW pg_catalog.pg_prepared_xacts AS
  SELECT p.transaction, p.gid, p.prepared, u.rolname AS owner, d.datname AS database
    FROM pg_prepared_xact() p
    LEFT JOIN pg_authid u ON u.oid = p.ownerid
    LEFT JOIN pg_database d ON d.oid = p.dbid;

CREATE VIEW pg_catalog.pg_stat_activity AS
  SELECT s.datid, d.datname, s.pid, s.leader_pid, s.usesysid, u.rolname AS usename,
         s.application_name, s.client_addr, s.client_hostname, s.client_port, s.backend_start,
         s.xact_start, s.query_start, s.state_change, s.wait_event_type, s.wait_event, s.state,
         s.backend_xid, s.backend_xmin, s.query_id, s.query, s.backend_type
    FROM pg_stat_get_activity(NULL) s
    LEFT JOIN pg_database d ON d.oid = s.datid
    LEFT JOIN pg_authid u ON u.oid = s.usesysid;

CREATE VIEW pg_catalog.pg_stat_ssl AS
  SELECT s.pid, s.ssl, s.sslversion AS version, s.sslcipher AS cipher, s.sslbits AS bits,
         s.ssl_client_dn AS client_dn, s.ssl_client_serial AS client_serial,
         s.ssl_issuer_dn AS issuer_dn
    FROM pg_stat_get_activity(NULL) s WHERE s.client_port IS NOT NULL;

CREATE VIEW pg_catalog.pg_stat_replication AS
  SELECT s.pid, s.usesysid, u.rolname AS usename, s.application_name, s.client_addr,
         s.client_hostname, s.client_port, s.backend_start, s.backend_xmin, w.state, w.sent_lsn,
         w.write_lsn, w.flush_lsn, w.replay_lsn, w.write_lag, w.flush_lag, w.replay_lag,
         w.sync_priority, w.sync_state, w.reply_time
    FROM pg_stat_get_activity(NULL) s
    JOIN pg_stat_get_wal_senders() w ON w.pid = s.pid
    LEFT JOIN pg_authid u ON u.oid = s.usesysid;

CREATE VIEW pg_catalog.pg_replication_slots AS
  SELECT l.slot_name, l.plugin, l.slot_type, l.datoid, d.datname AS database, l.temporary,
         l.active, l.active_pid, l.xmin, l.catalog_xmin, l.restart_lsn, l.confirmed_flush_lsn,
         l.wal_status, l.safe_wal_size, l.two_phase, l.two_phase_at, l.inactive_since,
         l.conflicting, l.invalidation_reason, l.failover, l.synced
    FROM pg_get_replication_slots() l LEFT JOIN pg_database d ON d.oid = l.datoid;

-- What happens to tables.
CREATE VIEW pg_catalog.pg_stat_all_tables AS
  SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
         pg_stat_get_numscans(c.oid) AS seq_scan, pg_stat_get_lastscan(c.oid) AS last_seq_scan,
         pg_stat_get_tuples_returned(c.oid) AS seq_tup_read,
         CASE WHEN c.relhasindex THEN ebb_stat_index_scans(c.oid) END AS idx_scan,
         (SELECT max(pg_stat_get_lastscan(x.indexrelid)) FROM pg_index x
           WHERE x.indrelid = c.oid) AS last_idx_scan,
         CASE WHEN c.relhasindex THEN ebb_stat_index_tuples(c.oid) END AS idx_tup_fetch,
         pg_stat_get_tuples_inserted(c.oid) AS n_tup_ins,
         pg_stat_get_tuples_updated(c.oid) AS n_tup_upd,
         pg_stat_get_tuples_deleted(c.oid) AS n_tup_del,
         pg_stat_get_tuples_hot_updated(c.oid) AS n_tup_hot_upd,
         pg_stat_get_tuples_newpage_updated(c.oid) AS n_tup_newpage_upd,
         pg_stat_get_live_tuples(c.oid) AS n_live_tup,
         pg_stat_get_dead_tuples(c.oid) AS n_dead_tup,
         pg_stat_get_mod_since_analyze(c.oid) AS n_mod_since_analyze,
         pg_stat_get_ins_since_vacuum(c.oid) AS n_ins_since_vacuum,
         pg_stat_get_last_vacuum_time(c.oid) AS last_vacuum,
         pg_stat_get_last_autovacuum_time(c.oid) AS last_autovacuum,
         pg_stat_get_last_analyze_time(c.oid) AS last_analyze,
         pg_stat_get_last_autoanalyze_time(c.oid) AS last_autoanalyze,
         pg_stat_get_vacuum_count(c.oid) AS vacuum_count,
         pg_stat_get_autovacuum_count(c.oid) AS autovacuum_count,
         pg_stat_get_analyze_count(c.oid) AS analyze_count,
         pg_stat_get_autoanalyze_count(c.oid) AS autoanalyze_count,
         pg_stat_get_total_vacuum_time(c.oid) AS total_vacuum_time,
         pg_stat_get_total_autovacuum_time(c.oid) AS total_autovacuum_time,
         pg_stat_get_total_analyze_time(c.oid) AS total_analyze_time,
         pg_stat_get_total_autoanalyze_time(c.oid) AS total_autoanalyze_time
    FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 't', 'm', 'p');
CREATE VIEW pg_catalog.pg_stat_sys_tables AS
  SELECT * FROM pg_stat_all_tables
   WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname LIKE 'pg\_toast%';
CREATE VIEW pg_catalog.pg_stat_user_tables AS
  SELECT * FROM pg_stat_all_tables
   WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
     AND schemaname NOT LIKE 'pg\_toast%';

CREATE VIEW pg_catalog.pg_stat_xact_all_tables AS
  SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
         pg_stat_get_xact_numscans(c.oid) AS seq_scan,
         pg_stat_get_xact_tuples_returned(c.oid) AS seq_tup_read,
         (SELECT sum(pg_stat_get_xact_numscans(x.indexrelid))::bigint FROM pg_index x
           WHERE x.indrelid = c.oid) AS idx_scan,
         (SELECT sum(pg_stat_get_xact_tuples_fetched(x.indexrelid))::bigint FROM pg_index x
           WHERE x.indrelid = c.oid) + pg_stat_get_xact_tuples_fetched(c.oid) AS idx_tup_fetch,
         pg_stat_get_xact_tuples_inserted(c.oid) AS n_tup_ins,
         pg_stat_get_xact_tuples_updated(c.oid) AS n_tup_upd,
         pg_stat_get_xact_tuples_deleted(c.oid) AS n_tup_del,
         pg_stat_get_xact_tuples_hot_updated(c.oid) AS n_tup_hot_upd,
         pg_stat_get_xact_tuples_newpage_updated(c.oid) AS n_tup_newpage_upd
    FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 't', 'm', 'p');
CREATE VIEW pg_catalog.pg_stat_xact_user_tables AS
  SELECT * FROM pg_stat_xact_all_tables
   WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
     AND schemaname NOT LIKE 'pg\_toast%';

CREATE VIEW pg_catalog.pg_stat_xact_sys_tables AS
  SELECT * FROM pg_stat_xact_all_tables
   WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname LIKE 'pg\_toast%';

CREATE VIEW pg_catalog.pg_stat_all_indexes AS
  SELECT c.oid AS relid, i.oid AS indexrelid, n.nspname AS schemaname, c.relname,
         i.relname AS indexrelname, pg_stat_get_numscans(i.oid) AS idx_scan,
         pg_stat_get_lastscan(i.oid) AS last_idx_scan,
         pg_stat_get_tuples_returned(i.oid) AS idx_tup_read,
         pg_stat_get_tuples_fetched(i.oid) AS idx_tup_fetch
    FROM pg_class c
    JOIN pg_index x ON x.indrelid = c.oid
    JOIN pg_class i ON i.oid = x.indexrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 't', 'm');
CREATE VIEW pg_catalog.pg_stat_sys_indexes AS
  SELECT * FROM pg_stat_all_indexes
   WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname LIKE 'pg\_toast%';
CREATE VIEW pg_catalog.pg_stat_user_indexes AS
  SELECT * FROM pg_stat_all_indexes
   WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
     AND schemaname NOT LIKE 'pg\_toast%';

CREATE VIEW pg_catalog.pg_statio_all_tables AS
  SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
         pg_stat_get_blocks_fetched(c.oid) - pg_stat_get_blocks_hit(c.oid) AS heap_blks_read,
         pg_stat_get_blocks_hit(c.oid) AS heap_blks_hit,
         (SELECT sum(pg_stat_get_blocks_fetched(x.indexrelid)
                     - pg_stat_get_blocks_hit(x.indexrelid))::bigint
            FROM pg_index x WHERE x.indrelid = c.oid) AS idx_blks_read,
         (SELECT sum(pg_stat_get_blocks_hit(x.indexrelid))::bigint
            FROM pg_index x WHERE x.indrelid = c.oid) AS idx_blks_hit,
         CASE WHEN c.reltoastrelid <> 0
              THEN pg_stat_get_blocks_fetched(c.reltoastrelid)
                   - pg_stat_get_blocks_hit(c.reltoastrelid) END AS toast_blks_read,
         CASE WHEN c.reltoastrelid <> 0
              THEN pg_stat_get_blocks_hit(c.reltoastrelid) END AS toast_blks_hit,
         (SELECT sum(pg_stat_get_blocks_fetched(x.indexrelid)
                     - pg_stat_get_blocks_hit(x.indexrelid))::bigint
            FROM pg_index x
           WHERE c.reltoastrelid <> 0 AND x.indrelid = c.reltoastrelid) AS tidx_blks_read,
         (SELECT sum(pg_stat_get_blocks_hit(x.indexrelid))::bigint
            FROM pg_index x
           WHERE c.reltoastrelid <> 0 AND x.indrelid = c.reltoastrelid) AS tidx_blks_hit
    FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 't', 'm');
CREATE VIEW pg_catalog.pg_statio_sys_tables AS
  SELECT * FROM pg_statio_all_tables
   WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname LIKE 'pg\_toast%';
CREATE VIEW pg_catalog.pg_statio_user_tables AS
  SELECT * FROM pg_statio_all_tables
   WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
     AND schemaname NOT LIKE 'pg\_toast%';

CREATE VIEW pg_catalog.pg_statio_all_indexes AS
  SELECT c.oid AS relid, i.oid AS indexrelid, n.nspname AS schemaname, c.relname,
         i.relname AS indexrelname,
         pg_stat_get_blocks_fetched(i.oid) - pg_stat_get_blocks_hit(i.oid) AS idx_blks_read,
         pg_stat_get_blocks_hit(i.oid) AS idx_blks_hit
    FROM pg_class c
    JOIN pg_index x ON x.indrelid = c.oid
    JOIN pg_class i ON i.oid = x.indexrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 't', 'm');
CREATE VIEW pg_catalog.pg_statio_sys_indexes AS
  SELECT * FROM pg_statio_all_indexes
   WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname LIKE 'pg\_toast%';
CREATE VIEW pg_catalog.pg_statio_user_indexes AS
  SELECT * FROM pg_statio_all_indexes
   WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
     AND schemaname NOT LIKE 'pg\_toast%';

CREATE VIEW pg_catalog.pg_statio_all_sequences AS
  SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
         pg_stat_get_blocks_fetched(c.oid) - pg_stat_get_blocks_hit(c.oid) AS blks_read,
         pg_stat_get_blocks_hit(c.oid) AS blks_hit
    FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind = 'S';
CREATE VIEW pg_catalog.pg_statio_sys_sequences AS
  SELECT * FROM pg_statio_all_sequences
   WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname LIKE 'pg\_toast%';
CREATE VIEW pg_catalog.pg_statio_user_sequences AS
  SELECT * FROM pg_statio_all_sequences
   WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
     AND schemaname NOT LIKE 'pg\_toast%';

-- What happens to databases and to the whole server.
CREATE VIEW pg_catalog.pg_stat_database AS
  SELECT d.oid AS datid, d.datname, pg_stat_get_db_numbackends(d.oid) AS numbackends,
         pg_stat_get_db_xact_commit(d.oid) AS xact_commit,
         pg_stat_get_db_xact_rollback(d.oid) AS xact_rollback,
         pg_stat_get_db_blocks_fetched(d.oid) - pg_stat_get_db_blocks_hit(d.oid) AS blks_read,
         pg_stat_get_db_blocks_hit(d.oid) AS blks_hit,
         pg_stat_get_db_tuples_returned(d.oid) AS tup_returned,
         pg_stat_get_db_tuples_fetched(d.oid) AS tup_fetched,
         pg_stat_get_db_tuples_inserted(d.oid) AS tup_inserted,
         pg_stat_get_db_tuples_updated(d.oid) AS tup_updated,
         pg_stat_get_db_tuples_deleted(d.oid) AS tup_deleted,
         pg_stat_get_db_conflict_all(d.oid) AS conflicts,
         pg_stat_get_db_temp_files(d.oid) AS temp_files,
         pg_stat_get_db_temp_bytes(d.oid) AS temp_bytes,
         pg_stat_get_db_deadlocks(d.oid) AS deadlocks,
         pg_stat_get_db_checksum_failures(d.oid) AS checksum_failures,
         pg_stat_get_db_checksum_last_failure(d.oid) AS checksum_last_failure,
         pg_stat_get_db_blk_read_time(d.oid) AS blk_read_time,
         pg_stat_get_db_blk_write_time(d.oid) AS blk_write_time,
         pg_stat_get_db_session_time(d.oid) AS session_time,
         pg_stat_get_db_active_time(d.oid) AS active_time,
         pg_stat_get_db_idle_in_transaction_time(d.oid) AS idle_in_transaction_time,
         pg_stat_get_db_sessions(d.oid) AS sessions,
         pg_stat_get_db_sessions_abandoned(d.oid) AS sessions_abandoned,
         pg_stat_get_db_sessions_fatal(d.oid) AS sessions_fatal,
         pg_stat_get_db_sessions_killed(d.oid) AS sessions_killed,
         pg_stat_get_db_parallel_workers_to_launch(d.oid) AS parallel_workers_to_launch,
         pg_stat_get_db_parallel_workers_launched(d.oid) AS parallel_workers_launched,
         pg_stat_get_db_stat_reset_time(d.oid) AS stats_reset
    FROM (SELECT 0::oid AS oid, NULL::name AS datname
          UNION ALL SELECT oid, datname FROM pg_database) d;

CREATE VIEW pg_catalog.pg_stat_database_conflicts AS
  SELECT d.oid AS datid, d.datname, pg_stat_get_db_conflict_tablespace(d.oid) AS confl_tablespace,
         pg_stat_get_db_conflict_lock(d.oid) AS confl_lock,
         pg_stat_get_db_conflict_snapshot(d.oid) AS confl_snapshot,
         pg_stat_get_db_conflict_bufferpin(d.oid) AS confl_bufferpin,
         pg_stat_get_db_conflict_startup_deadlock(d.oid) AS confl_deadlock,
         pg_stat_get_db_conflict_logicalslot(d.oid) AS confl_active_logicalslot
    FROM pg_database d;

CREATE VIEW pg_catalog.pg_stat_bgwriter AS
  SELECT pg_stat_get_bgwriter_buf_written_clean() AS buffers_clean,
         pg_stat_get_bgwriter_maxwritten_clean() AS maxwritten_clean,
         pg_stat_get_buf_alloc() AS buffers_alloc,
         pg_stat_get_bgwriter_stat_reset_time() AS stats_reset;

CREATE VIEW pg_catalog.pg_stat_checkpointer AS
  SELECT pg_stat_get_checkpointer_num_timed() AS num_timed,
         pg_stat_get_checkpointer_num_requested() AS num_requested,
         pg_stat_get_checkpointer_num_performed() AS num_done,
         pg_stat_get_checkpointer_restartpoints_timed() AS restartpoints_timed,
         pg_stat_get_checkpointer_restartpoints_requested() AS restartpoints_req,
         pg_stat_get_checkpointer_restartpoints_performed() AS restartpoints_done,
         pg_stat_get_checkpointer_write_time() AS write_time,
         pg_stat_get_checkpointer_sync_time() AS sync_time,
         pg_stat_get_checkpointer_buffers_written() AS buffers_written,
         pg_stat_get_checkpointer_slru_written() AS slru_written,
         pg_stat_get_checkpointer_stat_reset_time() AS stats_reset;

CREATE VIEW pg_catalog.pg_stat_wal AS SELECT * FROM pg_stat_get_wal();
CREATE VIEW pg_catalog.pg_stat_io AS SELECT * FROM pg_stat_get_io();
CREATE VIEW pg_catalog.pg_stat_archiver AS SELECT * FROM pg_stat_get_archiver();
CREATE VIEW pg_catalog.pg_stat_slru AS SELECT * FROM pg_stat_get_slru();

CREATE VIEW pg_catalog.pg_stat_user_functions AS
  SELECT p.oid AS funcid, n.nspname AS schemaname, p.proname AS funcname,
         pg_stat_get_function_calls(p.oid) AS calls,
         pg_stat_get_function_total_time(p.oid) AS total_time,
         pg_stat_get_function_self_time(p.oid) AS self_time
    FROM pg_proc p LEFT JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE p.prolang <> 12 AND pg_stat_get_function_calls(p.oid) IS NOT NULL;

CREATE VIEW pg_catalog.pg_stat_xact_user_functions AS
  SELECT p.oid AS funcid, n.nspname AS schemaname, p.proname AS funcname,
         pg_stat_get_xact_function_calls(p.oid) AS calls,
         pg_stat_get_xact_function_total_time(p.oid) AS total_time,
         pg_stat_get_xact_function_self_time(p.oid) AS self_time
    FROM pg_proc p LEFT JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE p.prolang <> 12 AND pg_stat_get_xact_function_calls(p.oid) IS NOT NULL;

-- What there is not, or not yet: replication, GSSAPI, prefetching at recovery.
CREATE VIEW pg_catalog.pg_stat_gssapi AS
  SELECT s.pid, s.gss_auth AS gss_authenticated, s.gss_princ AS principal, s.gss_enc AS encrypted,
         s.gss_delegation AS credentials_delegated
    FROM pg_stat_get_activity(NULL) s WHERE s.client_port IS NOT NULL;

CREATE VIEW pg_catalog.pg_stat_wal_receiver AS
  SELECT s.pid, s.status, s.receive_start_lsn, s.receive_start_tli, s.written_lsn, s.flushed_lsn,
         s.received_tli, s.last_msg_send_time, s.last_msg_receipt_time, s.latest_end_lsn,
         s.latest_end_time, s.slot_name, s.sender_host, s.sender_port, s.conninfo
    FROM pg_stat_get_wal_receiver() s WHERE s.pid IS NOT NULL;

CREATE VIEW pg_catalog.pg_stat_recovery_prefetch AS
  SELECT s.stats_reset, s.prefetch, s.hit, s.skip_init, s.skip_new, s.skip_fpw, s.skip_rep,
         s.wal_distance, s.block_distance, s.io_depth
    FROM pg_stat_get_recovery_prefetch() s;

CREATE VIEW pg_catalog.pg_stat_replication_slots AS
  SELECT s.slot_name, s.spill_txns, s.spill_count, s.spill_bytes, s.stream_txns, s.stream_count,
         s.stream_bytes, s.total_txns, s.total_bytes, s.stats_reset
    FROM pg_get_replication_slots() r, LATERAL pg_stat_get_replication_slot(r.slot_name::text) s
   WHERE r.datoid IS NOT NULL;

CREATE VIEW pg_catalog.pg_stat_subscription AS
  SELECT u.oid AS subid, u.subname, s.worker_type, s.pid, s.leader_pid, s.relid, s.received_lsn,
         s.last_msg_send_time, s.last_msg_receipt_time, s.latest_end_lsn, s.latest_end_time
    FROM pg_subscription u LEFT JOIN pg_stat_get_subscription(NULL) s ON s.subid = u.oid;

CREATE VIEW pg_catalog.pg_stat_subscription_stats AS
  SELECT u.oid AS subid, u.subname, s.apply_error_count, s.sync_error_count,
         s.confl_insert_exists, s.confl_update_origin_differs, s.confl_update_exists,
         s.confl_update_missing, s.confl_delete_origin_differs, s.confl_delete_missing,
         s.confl_multiple_unique_conflicts, s.stats_reset
    FROM pg_subscription u, LATERAL pg_stat_get_subscription_stats(u.oid) s;

CREATE VIEW pg_catalog.pg_stat_progress_cluster AS
  SELECT s.pid, s.datid, d.datname, s.relid,
         CASE s.param1 WHEN 1 THEN 'CLUSTER' WHEN 2 THEN 'VACUUM FULL' END AS command,
         CASE s.param2 WHEN 0 THEN 'initializing' WHEN 1 THEN 'seq scanning heap'
                       WHEN 2 THEN 'index scanning heap' WHEN 3 THEN 'sorting tuples'
                       WHEN 4 THEN 'writing new heap' WHEN 5 THEN 'swapping relation files'
                       WHEN 6 THEN 'rebuilding index'
                       WHEN 7 THEN 'performing final cleanup' END AS phase,
         s.param3::oid AS cluster_index_relid, s.param4 AS heap_tuples_scanned,
         s.param5 AS heap_tuples_written, s.param6 AS heap_blks_total,
         s.param7 AS heap_blks_scanned, s.param8 AS index_rebuild_count
    FROM pg_stat_get_progress_info('CLUSTER') s LEFT JOIN pg_database d ON d.oid = s.datid;

CREATE VIEW pg_catalog.pg_stat_progress_create_index AS
  SELECT s.pid, s.datid, d.datname, s.relid, s.param7::oid AS index_relid,
         CASE s.param1 WHEN 1 THEN 'CREATE INDEX' WHEN 2 THEN 'CREATE INDEX CONCURRENTLY'
                       WHEN 3 THEN 'REINDEX' WHEN 4 THEN 'REINDEX CONCURRENTLY' END AS command,
         CASE s.param10 WHEN 0 THEN 'initializing' WHEN 1 THEN 'waiting for writers before build'
                        WHEN 2 THEN 'building index' ||
                             CASE s.param9 WHEN 2 THEN ': scanning table'
                                           WHEN 3 THEN ': sorting live tuples'
                                           WHEN 5 THEN ': loading tuples in tree' ELSE '' END
                        WHEN 3 THEN 'waiting for writers before validation'
                        WHEN 4 THEN 'index validation: scanning index'
                        WHEN 5 THEN 'index validation: sorting tuples'
                        WHEN 6 THEN 'index validation: scanning table'
                        WHEN 7 THEN 'waiting for old snapshots'
                        WHEN 8 THEN 'waiting for readers before marking dead'
                        WHEN 9 THEN 'waiting for readers before dropping' END AS phase,
         s.param4 AS lockers_total, s.param5 AS lockers_done, s.param6 AS current_locker_pid,
         s.param16 AS blocks_total, s.param17 AS blocks_done, s.param12 AS tuples_total,
         s.param13 AS tuples_done, s.param14 AS partitions_total, s.param15 AS partitions_done
    FROM pg_stat_get_progress_info('CREATE INDEX') s LEFT JOIN pg_database d ON d.oid = s.datid;

CREATE VIEW pg_catalog.pg_stat_progress_copy AS
  SELECT s.pid, s.datid, d.datname, s.relid,
         CASE s.param5 WHEN 1 THEN 'COPY FROM' WHEN 2 THEN 'COPY TO' END AS command,
         CASE s.param6 WHEN 1 THEN 'FILE' WHEN 2 THEN 'PROGRAM' WHEN 3 THEN 'PIPE'
                       WHEN 4 THEN 'CALLBACK' END AS type,
         s.param1 AS bytes_processed, s.param2 AS bytes_total, s.param3 AS tuples_processed,
         s.param4 AS tuples_excluded, s.param7 AS tuples_skipped
    FROM pg_stat_get_progress_info('COPY') s LEFT JOIN pg_database d ON d.oid = s.datid;

CREATE VIEW pg_catalog.pg_stat_progress_basebackup AS
  SELECT s.pid,
         CASE s.param1 WHEN 0 THEN 'initializing' WHEN 1 THEN 'waiting for checkpoint to finish'
                       WHEN 2 THEN 'estimating backup size' WHEN 3 THEN 'streaming database files'
                       WHEN 4 THEN 'waiting for wal archiving to finish'
                       WHEN 5 THEN 'transferring wal files' END AS phase,
         CASE s.param2 WHEN -1 THEN NULL ELSE s.param2 END AS backup_total,
         s.param3 AS backup_streamed, s.param4 AS tablespaces_total,
         s.param5 AS tablespaces_streamed
    FROM pg_stat_get_progress_info('BASEBACKUP') s;

CREATE VIEW pg_catalog.pg_stat_progress_vacuum AS
  SELECT s.pid, s.datid, d.datname, s.relid,
         CASE s.param1 WHEN 0 THEN 'initializing' WHEN 1 THEN 'scanning heap'
                       WHEN 2 THEN 'vacuuming indexes' WHEN 3 THEN 'vacuuming heap'
                       WHEN 4 THEN 'cleaning up indexes' WHEN 5 THEN 'truncating heap'
                       WHEN 6 THEN 'performing final cleanup' END AS phase,
         s.param2 AS heap_blks_total, s.param3 AS heap_blks_scanned,
         s.param4 AS heap_blks_vacuumed, s.param5 AS index_vacuum_count,
         s.param6 AS max_dead_tuple_bytes, s.param7 AS dead_tuple_bytes,
         s.param8 AS num_dead_item_ids, s.param9 AS indexes_total,
         s.param10 AS indexes_processed, s.param11 / 1000000::double precision AS delay_time
    FROM pg_stat_get_progress_info('VACUUM') s LEFT JOIN pg_database d ON d.oid = s.datid;

CREATE VIEW pg_catalog.pg_stat_progress_analyze AS
  SELECT s.pid, s.datid, d.datname, s.relid,
         CASE s.param1 WHEN 0 THEN 'initializing' WHEN 1 THEN 'acquiring sample rows'
                       WHEN 2 THEN 'acquiring inherited sample rows'
                       WHEN 3 THEN 'computing statistics'
                       WHEN 4 THEN 'computing extended statistics'
                       WHEN 5 THEN 'finalizing analyze' END AS phase,
         s.param2 AS sample_blks_total, s.param3 AS sample_blks_scanned,
         s.param4 AS ext_stats_total, s.param5 AS ext_stats_computed,
         s.param6 AS child_tables_total, s.param7 AS child_tables_done,
         s.param8::oid AS current_child_table_relid,
         s.param9 / 1000000::double precision AS delay_time
    FROM pg_stat_get_progress_info('ANALYZE') s LEFT JOIN pg_database d ON d.oid = s.datid;

-- What is left for vacuums to do.
CREATE VIEW pg_catalog.ebb_vacuum_backlog AS
  SELECT b.relid, n.nspname AS schemaname, c.relname, b.dead_tuples, b.dead_bytes,
         b.unfrozen_pages, b.age, b.vacuum_due, b.insert_vacuum_due, b.aggressive_vacuum_due,
         b.wraparound_vacuum_due, b.held_by_pid, b.held_by, b.held_since, b.held_xids,
         b.pinned_bytes
    FROM ebb_vacuum_backlog_rows() b
    JOIN pg_class c ON c.oid = b.relid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace;

CREATE VIEW pg_catalog.pg_wait_events AS
  SELECT type, name, description FROM pg_get_wait_events();

CREATE VIEW pg_catalog.pg_aios AS
  SELECT pid, io_id, io_generation, state, operation, off, length, target, handle_data_len,
         raw_result, result, target_desc, f_sync, f_localmem, f_buffered
    FROM pg_get_aios();

CREATE VIEW pg_catalog.pg_timezone_abbrevs AS SELECT * FROM pg_timezone_abbrevs_abbrevs();
CREATE VIEW pg_catalog.pg_replication_origin_status AS SELECT * FROM pg_show_replication_origin_status();
CREATE VIEW pg_catalog.pg_publication_tables AS
  SELECT NULL::name AS pubname, NULL::name AS schemaname, NULL::name AS tablename,
         NULL::name[] AS attnames, NULL::text AS rowfilter WHERE false;
CREATE VIEW pg_catalog.pg_user_mappings AS
  SELECT NULL::oid AS umid, NULL::oid AS srvid, NULL::name AS srvname, NULL::oid AS umuser,
         NULL::name AS usename, NULL::text[] AS umoptions WHERE false;

CREATE VIEW pg_catalog.pg_config AS SELECT * FROM pg_config();

-- There are no such files, and so no lines of them.
CREATE VIEW pg_catalog.pg_hba_file_rules AS SELECT * FROM pg_hba_file_rules() a;

CREATE VIEW pg_catalog.pg_ident_file_mappings AS SELECT * FROM pg_ident_file_mappings() a;
