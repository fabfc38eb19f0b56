#variable_conflict use_column
<<b>> DECLARE x int := 1; y text; r record; a int[]; c CURSOR (n int) FOR rows n; k CONSTANT int := 3;
BEGIN
  FOR i IN REVERSE 5..1 BY 2 LOOP x := x + i; CONTINUE WHEN x = 2; EXIT b WHEN x > 900; END LOOP;
  FOR r IN c(2) LOOP y := y || r.b; END LOOP;
  a[1] := x; a[2:3] := ARRAY[1, 2];
  <<w>> WHILE x < 20 LOOP x := x + 3; IF x = 10 THEN CONTINUE w; ELSIF x = 4 THEN NULL; ELSE x = x; END IF; END LOOP w;
  CASE x WHEN 1, 2 THEN NULL; ELSE x := 2; END CASE;
EXCEPTION WHEN division_by_zero OR SQLSTATE '22012' THEN RAISE; WHEN OTHERS THEN RAISE NOTICE '% %%', SQLERRM;
END b;
----
DECLARE c refcursor; n bigint; t text = $q$ a $q$; m text := E'\x41\n' /* c /* d */ */; x int;
BEGIN
  OPEN c SCROLL FOR EXECUTE 'rows 3' USING 1, t; -- comment
  FETCH FORWARD FROM c INTO x, t; MOVE ABSOLUTE 1 IN c; CLOSE c;
  SELECT 1, 'a' INTO STRICT x, t; insert 1 returning 4 INTO x; PERFORM x; EXECUTE 'select 1' INTO x USING 2;
  GET DIAGNOSTICS n = ROW_COUNT, t := PG_CONTEXT; ASSERT true, 'm'; COMMIT AND CHAIN; ROLLBACK;
  BEGIN RAISE unique_violation USING MESSAGE = 'm', HINT := 'h'; EXCEPTION WHEN unique_violation THEN GET STACKED DIAGNOSTICS t = MESSAGE_TEXT; END;
  FOREACH x IN ARRAY ARRAY[1, 2] LOOP NULL; END LOOP;
END
----
DECLARE p pair; q p%TYPE; BEGIN p.x := 1; q := p; FOR p IN EXECUTE 'rows 2' LOOP RAISE WARNING '%', p.y; END LOOP; RETURN; END;
