-- Decision support of a retailer: a calendar of 200 years, and facts of five of them, sold in stores, by mail and on the
-- web, with returns and a weekly inventory. About 0.5 GB at scale 1. Facts are in no order: retail.py makes partitions
-- by month of them, or puts them into the order of days. psql makes the tables, and ends where the queries begin.
--
--     psql -v scale=1 -f bench/retail.sql
\set ON_ERROR_STOP on

CREATE SCHEMA retail;
SET search_path = retail;

-- A number from 0 to below - 1 that looks random; seed is different for each column.
CREATE FUNCTION pick(i bigint, seed int, below bigint) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN ((hashint8extended(i, seed) & 2147483647) % below)::int;

SELECT greatest(60000 * :scale, 2000)::int AS customers, greatest(12000 * :scale, 1000)::int AS items,
	   (250000 * :scale)::int AS tickets, (900000 * :scale)::int AS mails, (400000 * :scale)::int AS webs \gset

-- Dimensions. A day has a number, as have its month, its week, and the demographics of a customer.

CREATE UNLOGGED TABLE calendar AS
	SELECT day::date - date '1899-12-31' AS day, day::date AS date, extract(year FROM day)::int AS year,
		   extract(quarter FROM day)::int AS quarter, extract(month FROM day)::int AS month,
		   (extract(year FROM day) * 12 + extract(month FROM day))::int - 22801 AS month_number,
		   (day::date - date '1900-01-01') / 7 AS week, extract(isodow FROM day)::int AS weekday,
		   pick(extract(doy FROM day)::int, 11, 30) = 0 AS holiday
	FROM generate_series(timestamp '1900-01-01', timestamp '2099-12-31', interval '1 day') AS day;
CREATE UNLOGGED TABLE demographics AS
	SELECT i AS demographic, (ARRAY['F', 'M'])[i % 2 + 1] AS gender, (ARRAY['S', 'M', 'D', 'W', 'U'])[i / 2 % 5 + 1] AS marital,
		   (ARRAY['none', 'primary', 'secondary', 'college', 'doctor'])[i / 10 % 5 + 1] AS education, i / 50 % 7 AS dependents,
		   i / 350 % 20 AS income
	FROM generate_series(0, 6999) AS i;
CREATE UNLOGGED TABLE customers AS
	SELECT i AS customer, 'customer ' || i AS customer_name, pick(i, 12, 7000) AS demographic,
		   (ARRAY['Ada', 'Bly', 'Cor', 'Dun', 'Elm', 'Fay', 'Gro', 'Hay'])[pick(i, 13, 8) + 1] AS county,
		   'city ' || pick(i, 14, 400) AS city, 1930 + pick(i, 15, 70) AS born
	FROM generate_series(0, :customers - 1) AS i;
CREATE UNLOGGED TABLE items AS
	SELECT i AS item, 'item ' || i AS item_name, pick(i, 16, 400) AS brand, pick(i, 16, 400) / 4 AS class,
		   pick(i, 16, 400) / 40 AS category, 100 + pick(i, 17, 10000) AS price, 'color ' || pick(i, 18, 90) AS color,
		   pick(i, 19, 900) AS maker
	FROM generate_series(0, :items - 1) AS i;
CREATE UNLOGGED TABLE stores AS
	SELECT i AS store, 'store ' || i AS store_name, (ARRAY['north', 'south', 'east', 'west'])[pick(i, 20, 4) + 1] AS state,
		   (ARRAY['Ada', 'Bly', 'Cor', 'Dun', 'Elm', 'Fay', 'Gro', 'Hay'])[pick(i, 21, 8) + 1] AS county
	FROM generate_series(0, 59) AS i;

-- The day of a sale, of the years 2018 to 2022: one of four is in November or December, and few have no day.
CREATE FUNCTION sold(i bigint, seed int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN CASE WHEN pick(i, seed, 200) > 0 THEN date '2018-01-01' - date '1899-12-31' + CASE WHEN pick(i, seed + 1, 8) > 0
		THEN pick(i, seed + 2, 1826) ELSE pick(i, seed + 2, 5) * 365 + 305 + pick(i, seed + 3, 60) END END;

-- A ticket has 1 to 15 lines; one of ten comes back.
CREATE UNLOGGED TABLE store_sales AS
	SELECT day, ticket, line, customer, store, pick(n, 30, :items) AS item, pick(customer, 12, 7000) AS demographic,
		   1 + pick(n, 31, 100) AS quantity, 100 + pick(n, 32, 20000) AS cents, pick(n, 33, 9000) - 3000 AS profit,
		   pick(n, 34, 30) AS promotion
	FROM (SELECT i AS ticket, sold(i, 35) AS day, pick(i, 40, :customers) AS customer, pick(i, 41, 60) AS store
			FROM generate_series(0::bigint, :tickets - 1) AS i) t,
		generate_series(1, 15) AS line, LATERAL (SELECT ticket * 16 + line AS n) l
	WHERE line <= 1 + pick(ticket, 42, 15);
CREATE UNLOGGED TABLE store_returns AS
	SELECT day + 1 + pick(ticket * 16 + line, 43, 90) AS day, ticket, item, customer, store,
		   1 + pick(ticket * 16 + line, 44, quantity) AS quantity, pick(ticket * 16 + line, 45, 9000) AS loss,
		   pick(ticket * 16 + line, 46, 35) AS reason
	FROM store_sales WHERE pick(ticket * 16 + line, 47, 10) = 0;
CREATE UNLOGGED TABLE mail_sales AS
	SELECT sold(i / 6, 50) AS day, sold(i / 6, 50) + 2 + pick(i, 54, 118) AS shipped, i / 6 AS order_number,
		   pick(i / 6, 55, :customers) AS customer, pick(i, 56, :items) AS item, pick(i, 57, 5) AS warehouse,
		   pick(pick(i / 6, 55, :customers), 12, 7000) AS demographic, 1 + pick(i, 58, 100) AS quantity,
		   100 + pick(i, 59, 20000) AS cents, pick(i, 60, 9000) - 3000 AS profit, pick(i, 61, 3000) AS discount
	FROM generate_series(0::bigint, :mails - 1) AS i;
CREATE UNLOGGED TABLE mail_returns AS
	SELECT shipped + pick(order_number * 12000 + item, 62, 60) AS day, order_number, item, customer, cents AS refund
	FROM mail_sales WHERE pick(order_number * 12000 + item, 63, 10) = 0;
CREATE UNLOGGED TABLE web_sales AS
	SELECT sold(i / 8, 70) AS day, sold(i / 8, 70) + 1 + pick(i, 74, 119) AS shipped, i / 8 AS order_number,
		   pick(i / 8, 75, :customers) AS customer, pick(i, 76, :items) AS item, pick(i, 77, 5) AS warehouse,
		   1 + pick(i, 78, 100) AS quantity, 100 + pick(i, 79, 20000) AS cents, pick(i, 80, 9000) - 3000 AS profit,
		   pick(i, 81, 3000) AS discount
	FROM generate_series(0::bigint, :webs - 1) AS i;
-- One day of each week, half of the items.
CREATE UNLOGGED TABLE inventory AS
	SELECT day, item, warehouse, pick(day * 100000::bigint + item * 5 + warehouse, 90, 1000) AS stock
	FROM calendar, generate_series(0, :items - 1, 6) AS item, generate_series(0, 4) AS warehouse
	WHERE year BETWEEN 2018 AND 2022 AND weekday = 4 ORDER BY hashint8(item * 5 + warehouse), day;

ALTER TABLE calendar ADD PRIMARY KEY (day);
ALTER TABLE demographics ADD PRIMARY KEY (demographic);
ALTER TABLE customers ADD PRIMARY KEY (customer);
ALTER TABLE items ADD PRIMARY KEY (item);
ALTER TABLE stores ADD PRIMARY KEY (store);
CREATE INDEX ON store_sales (ticket, item);
CREATE INDEX ON store_returns (ticket, item);
CREATE INDEX ON mail_sales (order_number, item);
CREATE INDEX ON mail_sales (customer);
CREATE INDEX ON mail_returns (order_number, item);
CREATE INDEX ON web_sales (order_number, item);

VACUUM (FREEZE, ANALYZE) calendar, demographics, customers, items, stores, store_sales, store_returns, mail_sales,
	mail_returns, web_sales, inventory;

-- A line "-- name" begins a query. The rows of each are determined: what LIMIT keeps is ordered by a unique key.
\q

-- a year by category
SELECT category, count(*), sum(quantity * cents)
FROM store_sales JOIN calendar USING (day) JOIN items USING (item) WHERE year = 2020 GROUP BY category ORDER BY category;

-- brands of one month
SELECT brand, sum(cents) FROM store_sales JOIN calendar USING (day) JOIN items USING (item)
WHERE year = 2021 AND month = 11 AND maker < 30 GROUP BY brand ORDER BY sum(cents) DESC, brand LIMIT 100;

-- November of all years
SELECT year, brand, sum(cents) FROM store_sales JOIN calendar USING (day) JOIN items USING (item)
WHERE month = 11 AND maker = 128 GROUP BY year, brand ORDER BY year, sum(cents) DESC, brand LIMIT 100;

-- two months
SELECT store_name, count(*), sum(profit)
FROM store_sales JOIN calendar USING (day) JOIN stores USING (store) JOIN items USING (item)
WHERE date BETWEEN '2019-02-01' AND '2019-03-31' AND category = 3 GROUP BY store_name ORDER BY store_name;

-- days of the week by store
SELECT store_name, sum(CASE WHEN weekday = 1 THEN cents END) AS monday, sum(CASE WHEN weekday = 5 THEN cents END) AS friday,
	sum(CASE WHEN weekday = 7 THEN cents END) AS sunday
FROM store_sales JOIN calendar USING (day) JOIN stores USING (store) WHERE year = 2020 AND state = 'north'
GROUP BY store_name ORDER BY store_name;

-- Saturdays
SELECT category, count(*), sum(quantity) FROM web_sales JOIN calendar USING (day) JOIN items USING (item)
WHERE weekday = 6 GROUP BY category ORDER BY category;

-- Mondays of a year
SELECT county, count(*), sum(cents) FROM mail_sales JOIN calendar USING (day) JOIN customers USING (customer)
WHERE weekday = 1 AND year = 2019 AND born BETWEEN 1960 AND 1970 GROUP BY county ORDER BY county;

-- holidays
SELECT year, state, sum(cents) FROM store_sales JOIN calendar USING (day) JOIN stores USING (store)
WHERE holiday GROUP BY year, state ORDER BY year, state;

-- weeks against those of a year ago
WITH weekly AS (SELECT week, store, sum(CASE WHEN weekday < 6 THEN cents END) AS workdays, sum(CASE WHEN weekday > 5 THEN cents END) AS weekend
	FROM store_sales JOIN calendar USING (day) GROUP BY week, store)
SELECT store_name, a.week, a.workdays::float / b.workdays, a.weekend::float / b.weekend
FROM (SELECT * FROM weekly JOIN stores USING (store) WHERE week IN (SELECT week FROM calendar WHERE month_number BETWEEN 1440 AND 1451)) a
	JOIN (SELECT * FROM weekly WHERE week IN (SELECT week FROM calendar WHERE month_number BETWEEN 1452 AND 1463)) b
		ON b.store = a.store AND b.week = a.week + 52
ORDER BY store_name, a.week LIMIT 100;

-- last week against the same of a year ago
WITH sold AS (SELECT week, item, sum(cents) AS cents FROM web_sales JOIN calendar USING (day)
	WHERE year IN (2020, 2021) GROUP BY week, item)
SELECT a.item, a.cents, b.cents FROM sold a JOIN sold b ON b.item = a.item AND b.week = a.week - 52
WHERE a.week = (SELECT week FROM calendar WHERE date = '2021-10-06') ORDER BY a.cents - b.cents DESC, a.item LIMIT 100;

-- sold alike in a week in all channels
WITH store_items AS (SELECT item, sum(cents) AS cents FROM store_sales JOIN calendar USING (day)
		WHERE date IN (SELECT date FROM calendar WHERE week = (SELECT week FROM calendar WHERE date = '2020-05-06')) GROUP BY item),
	mail_items AS (SELECT item, sum(cents) AS cents FROM mail_sales JOIN calendar USING (day)
		WHERE date IN (SELECT date FROM calendar WHERE week = (SELECT week FROM calendar WHERE date = '2020-05-06')) GROUP BY item),
	web_items AS (SELECT item, sum(cents) AS cents FROM web_sales JOIN calendar USING (day)
		WHERE date IN (SELECT date FROM calendar WHERE week = (SELECT week FROM calendar WHERE date = '2020-05-06')) GROUP BY item)
SELECT item, s.cents, m.cents, w.cents FROM store_items s JOIN mail_items m USING (item) JOIN web_items w USING (item)
WHERE s.cents BETWEEN m.cents / 2 AND m.cents * 2 ORDER BY item LIMIT 100;

-- tickets that come back within a month
SELECT store_name, count(*) FROM store_sales s JOIN store_returns r ON r.ticket = s.ticket AND r.item = s.item
	JOIN stores st ON st.store = s.store JOIN calendar c ON c.day = r.day
WHERE c.year = 2020 AND c.month = 8 AND r.day - s.day <= 30 GROUP BY store_name ORDER BY store_name;

-- orders without returns
SELECT count(DISTINCT order_number), sum(cents), sum(profit)
FROM mail_sales m JOIN calendar ON calendar.day = shipped JOIN customers USING (customer)
WHERE date BETWEEN '2019-02-01' AND '2019-04-02' AND county = 'Elm'
	AND NOT EXISTS (SELECT FROM mail_returns r WHERE r.order_number = m.order_number);

-- orders of which something came back
SELECT warehouse, count(*), sum(cents) FROM mail_sales m JOIN calendar USING (day)
WHERE year = 2021 AND quarter = 2
	AND EXISTS (SELECT FROM mail_returns r WHERE r.order_number = m.order_number AND r.item = m.item)
GROUP BY warehouse ORDER BY warehouse;

-- orders from several warehouses
SELECT count(DISTINCT order_number), sum(cents) FROM web_sales w JOIN calendar ON calendar.day = shipped
WHERE date BETWEEN '2020-05-01' AND '2020-06-30' AND discount < 300
	AND EXISTS (SELECT FROM web_sales o WHERE o.order_number = w.order_number AND o.warehouse <> w.warehouse);

-- stores and web by item
SELECT count(*), count(s.item), count(w.item), sum(s.cents), sum(w.cents)
FROM (SELECT item, customer, sum(cents) AS cents FROM store_sales JOIN calendar USING (day)
		WHERE month_number BETWEEN 1440 AND 1445 GROUP BY item, customer) s
	FULL JOIN (SELECT item, customer, sum(cents) AS cents FROM web_sales JOIN calendar USING (day)
		WHERE month_number BETWEEN 1440 AND 1445 GROUP BY item, customer) w USING (item, customer);

-- sums that grow, stores and web
SELECT * FROM (SELECT item, date, sum(s) OVER w AS store_sum, sum(o) OVER w AS web_sum
	FROM (SELECT item, date, sum(cents) AS s FROM store_sales JOIN calendar USING (day)
			WHERE month_number BETWEEN 1428 AND 1430 GROUP BY item, date) a
		FULL JOIN (SELECT item, date, sum(cents) AS o FROM web_sales JOIN calendar USING (day)
			WHERE month_number BETWEEN 1428 AND 1430 GROUP BY item, date) b USING (item, date)
	WINDOW w AS (PARTITION BY item ORDER BY date)) x
WHERE web_sum > store_sum ORDER BY item, date LIMIT 100;

-- roll-up by month
SELECT year, month, category, count(*), sum(cents) FROM mail_sales JOIN calendar USING (day) JOIN items USING (item)
WHERE year BETWEEN 2019 AND 2020 GROUP BY ROLLUP (year, month, category) ORDER BY 1, 2, 3;

-- roll-up of a few days
SELECT date, state, sum(profit) FROM store_sales JOIN calendar USING (day) JOIN stores USING (store)
WHERE date BETWEEN '2020-08-23' AND '2020-09-22' GROUP BY ROLLUP (state, date) ORDER BY 2, 1;

-- top items of each category
SELECT * FROM (SELECT category, item_name, sum(profit) AS profit,
		rank() OVER (PARTITION BY category ORDER BY sum(profit) DESC, item_name) AS place
	FROM store_sales JOIN calendar USING (day) JOIN items USING (item)
	WHERE month_number BETWEEN 1452 AND 1463 AND price > 5000 GROUP BY category, item_name) x
WHERE place <= 5 ORDER BY category, place;

-- share of an item in its class
SELECT class, item_name, revenue, revenue::float / sum(revenue) OVER (PARTITION BY class) AS share
FROM (SELECT class, item_name, sum(cents) AS revenue FROM web_sales JOIN calendar USING (day) JOIN items USING (item)
	WHERE category IN (1, 4, 7) AND date BETWEEN '2019-02-22' AND '2019-03-24' GROUP BY class, item_name) x
ORDER BY class, item_name LIMIT 100;

-- customers of all three channels
SELECT count(*) FROM (
	SELECT customer_name, date FROM store_sales JOIN calendar USING (day) JOIN customers USING (customer) WHERE year = 2020
	INTERSECT
	SELECT customer_name, date FROM mail_sales JOIN calendar USING (day) JOIN customers USING (customer) WHERE year = 2020
	INTERSECT
	SELECT customer_name, date FROM web_sales JOIN calendar USING (day) JOIN customers USING (customer) WHERE year = 2020) x;

-- customers who buy in stores and elsewhere
SELECT gender, marital, education, count(*) FROM customers c JOIN demographics USING (demographic)
WHERE county IN ('Ada', 'Fay')
	AND EXISTS (SELECT FROM store_sales s JOIN calendar USING (day) WHERE s.customer = c.customer AND year = 2019 AND month BETWEEN 1 AND 4)
	AND EXISTS (SELECT FROM (SELECT customer, day FROM web_sales UNION ALL SELECT customer, day FROM mail_sales) s
		JOIN calendar USING (day) WHERE s.customer = c.customer AND year = 2019 AND month BETWEEN 1 AND 4)
GROUP BY gender, marital, education ORDER BY 1, 2, 3;

-- customers who buy in stores alone
SELECT education, count(*) FROM customers c JOIN demographics USING (demographic)
WHERE EXISTS (SELECT FROM store_sales s JOIN calendar USING (day) WHERE s.customer = c.customer AND year = 2021 AND quarter = 2)
	AND NOT EXISTS (SELECT FROM web_sales s JOIN calendar USING (day) WHERE s.customer = c.customer AND year = 2021 AND quarter = 2)
	AND NOT EXISTS (SELECT FROM mail_sales s JOIN calendar USING (day) WHERE s.customer = c.customer AND year = 2021 AND quarter = 2)
GROUP BY education ORDER BY education;

-- customers whose share of the web grows
SELECT customer_name
FROM (SELECT customer, sum(cents) FILTER (WHERE year = 2020) AS a, sum(cents) FILTER (WHERE year = 2021) AS b
		FROM store_sales JOIN calendar USING (day) WHERE year BETWEEN 2020 AND 2021 GROUP BY customer) s
	JOIN (SELECT customer, sum(cents) FILTER (WHERE year = 2020) AS a, sum(cents) FILTER (WHERE year = 2021) AS b
		FROM web_sales JOIN calendar USING (day) WHERE year BETWEEN 2020 AND 2021 GROUP BY customer) w USING (customer)
	JOIN customers USING (customer)
WHERE county = 'Ada' AND w.b::float / w.a > s.b::float / s.a ORDER BY customer_name LIMIT 100;

-- inventory before and after a date
SELECT warehouse, item_name, sum(CASE WHEN date < '2020-03-11' THEN stock ELSE 0 END) AS before,
	sum(CASE WHEN date >= '2020-03-11' THEN stock ELSE 0 END) AS after
FROM inventory JOIN items USING (item) JOIN calendar USING (day)
WHERE date BETWEEN date '2020-03-11' - 30 AND date '2020-03-11' + 30 AND price BETWEEN 2000 AND 2500
GROUP BY warehouse, item_name ORDER BY warehouse, item_name LIMIT 100;

-- inventory that varies
WITH monthly AS (SELECT warehouse, item, month, stddev_samp(stock) / nullif(avg(stock), 0) AS deviation
	FROM inventory JOIN calendar USING (day) WHERE year = 2021 GROUP BY warehouse, item, month)
SELECT a.warehouse, a.item, round(a.deviation, 6), round(b.deviation, 6)
FROM monthly a JOIN monthly b ON b.warehouse = a.warehouse AND b.item = a.item AND b.month = 2
WHERE a.month = 1 AND a.deviation > 1 AND b.deviation > 0.5 ORDER BY 1, 2;

-- roll-up of the inventory
SELECT category, brand, avg(stock) FROM inventory JOIN calendar USING (day) JOIN items USING (item)
WHERE month_number BETWEEN 1440 AND 1451 GROUP BY ROLLUP (category, brand) ORDER BY 3, 1, 2 LIMIT 100;

-- items in stock that were sold
SELECT item_name, price FROM items JOIN inventory USING (item) JOIN calendar USING (day)
WHERE price BETWEEN 3000 AND 4000 AND date BETWEEN '2020-06-02' AND '2020-08-01' AND stock BETWEEN 100 AND 500
	AND item IN (SELECT item FROM mail_sales) GROUP BY item_name, price ORDER BY item_name LIMIT 100;

-- ordered in a week of too little stock
SELECT item_name, a.week, count(*)
FROM mail_sales m JOIN inventory i ON i.item = m.item JOIN items ON items.item = m.item
	JOIN demographics d ON d.demographic = m.demographic JOIN calendar a ON a.day = m.day
	JOIN calendar b ON b.day = i.day JOIN calendar c ON c.day = m.shipped
WHERE b.week = a.week AND i.stock < m.quantity AND c.date > a.date + 5 AND a.year = 2019 AND marital = 'D' AND income < 10
GROUP BY item_name, a.week ORDER BY count(*) DESC, item_name, a.week LIMIT 100;

-- bought, returned, and bought again by mail
SELECT item_name, store_name, count(*), sum(s.quantity), sum(r.quantity), sum(m.quantity)
FROM store_sales s JOIN store_returns r ON r.customer = s.customer AND r.item = s.item AND r.ticket = s.ticket
	JOIN mail_sales m ON m.customer = r.customer AND m.item = r.item
	JOIN calendar a ON a.day = s.day JOIN calendar b ON b.day = r.day JOIN calendar c ON c.day = m.day
	JOIN stores ON stores.store = s.store JOIN items ON items.item = s.item
WHERE a.year = 2020 AND a.quarter = 1 AND b.year = 2020 AND b.quarter BETWEEN 1 AND 3 AND c.year = 2020
GROUP BY item_name, store_name ORDER BY 1, 2 LIMIT 100;

-- returned more than usual
WITH returned AS (SELECT customer, store, sum(loss) AS total FROM store_returns JOIN calendar USING (day)
	WHERE year = 2020 GROUP BY customer, store)
SELECT customer_name FROM returned JOIN (SELECT store, avg(total) * 1.2 AS usual FROM returned GROUP BY store) u USING (store)
	JOIN stores USING (store) JOIN customers USING (customer)
WHERE total > usual AND state = 'south'
ORDER BY customer_name LIMIT 100;

-- days until it is shipped
SELECT warehouse, sum((shipped - mail_sales.day <= 30)::int) AS "30", sum((shipped - mail_sales.day BETWEEN 31 AND 60)::int) AS "60",
	sum((shipped - mail_sales.day > 60)::int) AS more
FROM mail_sales JOIN calendar ON calendar.day = shipped WHERE month_number BETWEEN 1430 AND 1441 GROUP BY warehouse ORDER BY 1;

-- large discounts
SELECT sum(discount) FROM web_sales w JOIN items i USING (item) JOIN calendar USING (day)
WHERE maker = 350 AND date BETWEEN '2020-01-27' AND '2020-04-26'
	AND discount > (SELECT 1.3 * avg(discount) FROM web_sales v JOIN calendar d USING (day)
		WHERE v.item = i.item AND d.date BETWEEN '2020-01-27' AND '2020-04-26');

-- of some demographics
SELECT avg(quantity), avg(cents), sum(profit)
FROM store_sales JOIN calendar USING (day) JOIN demographics USING (demographic) JOIN customers USING (customer)
WHERE year = 2021 AND ((marital = 'M' AND education = 'doctor' AND cents BETWEEN 10000 AND 15000)
	OR (marital = 'S' AND education = 'college' AND cents BETWEEN 5000 AND 10000))
	AND county IN ('Bly', 'Cor', 'Gro');

-- items of a demographic
SELECT item_name, avg(quantity), avg(cents)
FROM store_sales JOIN calendar USING (day) JOIN items USING (item) JOIN demographics USING (demographic)
WHERE gender = 'M' AND marital = 'S' AND education = 'college' AND year = 2020 GROUP BY item_name ORDER BY item_name LIMIT 100;

-- large tickets
SELECT customer_name, ticket, lines
FROM (SELECT ticket, customer, count(*) AS lines FROM store_sales JOIN calendar USING (day) JOIN stores USING (store)
		JOIN demographics USING (demographic)
	WHERE weekday IN (1, 7) AND year IN (2019, 2020, 2021) AND income BETWEEN 3 AND 6 AND state = 'east'
	GROUP BY ticket, customer) t JOIN customers USING (customer)
WHERE lines BETWEEN 12 AND 14 ORDER BY customer_name, ticket LIMIT 100;

-- quarters by county
WITH store_quarters AS (SELECT county, quarter, sum(cents) AS cents FROM store_sales JOIN calendar USING (day)
		JOIN customers USING (customer) WHERE year = 2020 GROUP BY county, quarter),
	web_quarters AS (SELECT county, quarter, sum(cents) AS cents FROM web_sales JOIN calendar USING (day)
		JOIN customers USING (customer) WHERE year = 2020 GROUP BY county, quarter)
SELECT a.county, b.cents::float / a.cents, d.cents::float / c.cents
FROM store_quarters a JOIN store_quarters b USING (county) JOIN web_quarters c USING (county) JOIN web_quarters d USING (county)
WHERE a.quarter = 1 AND b.quarter = 2 AND c.quarter = 1 AND d.quarter = 2 ORDER BY a.county;

-- a year against the year before
WITH sold AS (SELECT year, brand, class, category, sum(quantity) AS quantity, sum(amount) AS amount
	FROM (SELECT day, item, quantity, cents AS amount FROM mail_sales
		UNION ALL SELECT day, item, quantity, cents FROM store_sales
		UNION ALL SELECT day, item, quantity, cents FROM web_sales) a
		JOIN items USING (item) JOIN calendar USING (day) WHERE category = 2 GROUP BY year, brand, class, category)
SELECT a.year, b.year, a.brand, a.quantity, b.quantity FROM sold a JOIN sold b USING (brand, class, category)
WHERE a.year = 2021 AND b.year = 2020 AND a.quantity::float / b.quantity < 0.95 ORDER BY a.quantity - b.quantity, a.brand;

-- a month in all channels
SELECT maker, sum(cents) FROM (
	SELECT maker, sum(cents) AS cents FROM store_sales JOIN calendar USING (day) JOIN items USING (item)
		WHERE year = 2019 AND month = 3 AND maker IN (SELECT maker FROM items WHERE category = 5) GROUP BY maker
	UNION ALL SELECT maker, sum(cents) FROM mail_sales JOIN calendar USING (day) JOIN items USING (item)
		WHERE year = 2019 AND month = 3 AND maker IN (SELECT maker FROM items WHERE category = 5) GROUP BY maker
	UNION ALL SELECT maker, sum(cents) FROM web_sales JOIN calendar USING (day) JOIN items USING (item)
		WHERE year = 2019 AND month = 3 AND maker IN (SELECT maker FROM items WHERE category = 5) GROUP BY maker) x
GROUP BY maker ORDER BY sum(cents), maker LIMIT 100;
