-- The analytic queries and their data: a shop, with facts around shared dimensions, some of them snowflakes. About 1 GB
-- at scale 1. Everything is computed from row numbers, so it is the same in each run. psql makes the tables, and ends
-- where the queries begin.
--
--     psql -v scale=1 -f bench/joins_queries.sql
\set ON_ERROR_STOP on

CREATE SCHEMA analytic;
SET search_path = analytic;

-- A number from 0 to below - 1 that looks random; seed is different for each column.
CREATE FUNCTION pick(i bigint, seed int, below bigint) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN ((hashint8extended(i, seed) & 2147483647) % below)::int;

-- The same, smaller numbers more often than large ones.
CREATE FUNCTION pick_skewed(i bigint, seed int, below bigint) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN ((((hashint8extended(i, seed) & 65535) * (hashint8extended(i, seed) >> 16 & 65535)) * below) >> 32)::int;

SELECT (150000 * :scale)::int AS customers, (50000 * :scale)::int AS products, (5000 * :scale)::int AS suppliers,
	   (750000 * :scale)::int AS orders, (3000000 * :scale)::int AS sales, (1500000 * :scale)::int AS visits \gset

-- Dimensions. Cities belong to nations, and nations to regions; categories belong to departments.

CREATE UNLOGGED TABLE regions AS
	SELECT i AS region, (ARRAY['Africa', 'America', 'Asia', 'Europe', 'Oceania'])[i + 1] AS region_name
	FROM generate_series(0, 4) AS i;
CREATE UNLOGGED TABLE nations AS
	SELECT i AS nation, 'nation ' || i AS nation_name, i % 5 AS region FROM generate_series(0, 24) AS i;
CREATE UNLOGGED TABLE cities AS
	SELECT i AS city, 'city ' || i AS city_name, pick(i, 10, 25) AS nation FROM generate_series(0, 1999) AS i;
CREATE UNLOGGED TABLE departments AS
	SELECT i AS department, 'department ' || i AS department_name FROM generate_series(0, 11) AS i;
CREATE UNLOGGED TABLE categories AS
	SELECT i AS category, 'category ' || i AS category_name, i % 12 AS department FROM generate_series(0, 199) AS i;
CREATE UNLOGGED TABLE days AS
	SELECT day::date AS day, extract(year FROM day)::int AS year, extract(quarter FROM day)::int AS quarter,
		   extract(month FROM day)::int AS month, extract(isodow FROM day)::int AS weekday,
		   pick(extract(doy FROM day)::int, 11, 30) = 0 AS holiday
	FROM generate_series(timestamp '2018-01-01', timestamp '2024-12-31', interval '1 day') AS day;
CREATE UNLOGGED TABLE stores AS
	SELECT i AS store, 'store ' || i AS store_name, pick(i, 12, 2000) AS city,
		   (ARRAY['mall', 'street', 'outlet', 'airport'])[pick_skewed(i, 13, 4) + 1] AS kind
	FROM generate_series(0, 499) AS i;
CREATE UNLOGGED TABLE promotions AS
	SELECT i AS promotion, 'promotion ' || i AS promotion_name,
		   (ARRAY['none', 'mail', 'radio', 'press', 'web'])[CASE WHEN i = 0 THEN 1 ELSE pick(i, 14, 4) + 2 END] AS channel
	FROM generate_series(0, 299) AS i;
CREATE UNLOGGED TABLE customers AS
	SELECT i AS customer, 'Customer#' || lpad(i::text, 9, '0') AS customer_name, pick(i, 15, 2000) AS city,
		   (ARRAY['automobile', 'building', 'furniture', 'household', 'machinery'])[pick(i, 16, 5) + 1] AS segment,
		   date '2010-01-01' + pick(i, 17, 5400) AS since, md5(i::text) || '@mail.example' AS email
	FROM generate_series(0, :customers - 1) AS i;
CREATE UNLOGGED TABLE suppliers AS
	SELECT i AS supplier, 'Supplier#' || lpad(i::text, 9, '0') AS supplier_name, pick(i, 18, 25) AS nation
	FROM generate_series(0, :suppliers - 1) AS i;
CREATE UNLOGGED TABLE products AS
	SELECT i AS product, 'PRD-' || upper(left(md5(i::text), 16)) AS code, 'product ' || i AS product_name,
		   'brand ' || pick(i, 19, 500) AS brand, pick_skewed(i, 20, 200) AS category,
		   pick(i, 21, :suppliers) AS supplier, 1 + pick(i, 22, 500) AS size, (100 + pick(i, 23, 100000)) AS cents
	FROM generate_series(0, :products - 1) AS i;

-- Facts: orders with one to seven lines, some of which come back, sales in stores, and visits of the web site, which
-- name a product by its code.

CREATE UNLOGGED TABLE orders AS
	SELECT i AS order_id, pick(i, 30, :customers * 2 / 3) AS customer, date '2018-01-01' + pick(i, 31, 2500) AS ordered,
		   (ARRAY['1-urgent', '2-high', '3-medium', '4-not specified', '5-low'])[pick(i, 32, 5) + 1] AS priority,
		   (ARRAY['open', 'finished', 'partial'])[pick_skewed(i, 33, 3) + 1] AS status,
		   'Clerk#' || lpad(pick(i, 34, 1000)::text, 9, '0') AS clerk, 'order notes ' || md5(i::text) AS notes
	FROM (SELECT generate_series(0::bigint, :orders - 1) AS i) n;
CREATE UNLOGGED TABLE lines AS
	SELECT order_id, line, l.product, p.supplier, 1 + pick(n, 40, 50) AS quantity, p.cents, pick(n, 41, 11) AS discount,
		   ordered + 1 + pick(n, 42, 120) AS shipped, ordered + 30 + pick(n, 43, 61) AS committed,
		   ordered + 2 + pick(n, 42, 120) + pick(n, 44, 30) AS received,
		   (ARRAY['air', 'ship', 'truck', 'rail', 'mail', 'courier', 'self'])[pick(n, 45, 7) + 1] AS mode,
		   'line notes ' || left(md5(n::text), 16) AS notes
	FROM (SELECT order_id, ordered, line, order_id * 8 + line AS n,
			pick_skewed(order_id * 8 + line, 46, :products) AS product
		FROM orders, generate_series(1, 7) AS line WHERE line <= 1 + pick(order_id, 47, 7)) l
	JOIN products p USING (product);
CREATE UNLOGGED TABLE returns AS
	SELECT order_id, line, received + pick(order_id * 8 + line, 48, 30) AS returned,
		   (ARRAY['broken', 'wrong', 'late', 'unwanted'])[pick(order_id * 8 + line, 49, 4) + 1] AS reason
	FROM lines WHERE pick(order_id * 8 + line, 50, 25) = 0;
CREATE UNLOGGED TABLE sales AS
	SELECT i AS sale, date '2018-01-01' + (i * 2557 / :sales)::int AS day, pick(i, 60, 500) AS store,
		   pick_skewed(i, 61, :products) AS product, pick(i, 62, :customers) AS customer,
		   CASE WHEN pick(i, 63, 3) = 0 THEN pick(i, 64, 300) ELSE 0 END AS promotion, 1 + pick(i, 65, 9) AS quantity,
		   100 + pick(i, 66, 100000) AS cents, md5(i::text) AS receipt
	FROM (SELECT generate_series(0::bigint, :sales - 1) AS i) n;
CREATE UNLOGGED TABLE visits AS
	SELECT i AS visit, date '2018-01-01' + (i * 2557 / :visits)::int AS day,
		   CASE WHEN pick(i, 70, 3) > 0 THEN pick(i, 71, :customers) END AS customer,
		   'PRD-' || upper(left(md5(pick_skewed(i, 72, :products)::text), 16)) AS code,
		   'https://www.example.org/from/' || pick(i, 73, 5000) AS referrer, pick_skewed(i, 74, 60000) AS ms
	FROM (SELECT generate_series(0::bigint, :visits - 1) AS i) n;

ALTER TABLE regions ADD PRIMARY KEY (region);
ALTER TABLE nations ADD PRIMARY KEY (nation);
ALTER TABLE cities ADD PRIMARY KEY (city);
ALTER TABLE departments ADD PRIMARY KEY (department);
ALTER TABLE categories ADD PRIMARY KEY (category);
ALTER TABLE days ADD PRIMARY KEY (day);
ALTER TABLE stores ADD PRIMARY KEY (store);
ALTER TABLE promotions ADD PRIMARY KEY (promotion);
ALTER TABLE customers ADD PRIMARY KEY (customer);
ALTER TABLE suppliers ADD PRIMARY KEY (supplier);
ALTER TABLE products ADD PRIMARY KEY (product), ADD UNIQUE (code);
ALTER TABLE orders ADD PRIMARY KEY (order_id);
ALTER TABLE lines ADD PRIMARY KEY (order_id, line);
ALTER TABLE returns ADD PRIMARY KEY (order_id, line);

VACUUM (FREEZE, ANALYZE) regions, nations, cities, departments, categories, days, stores, promotions, customers,
	suppliers, products, orders, lines, returns, sales, visits;

-- A line "-- name" begins a query. The rows of each are determined: what LIMIT keeps is ordered by a unique key.
\q

-- unshipped orders
SELECT o.order_id, ordered, sum(quantity * l.cents) AS revenue
FROM customers c JOIN orders o USING (customer) JOIN lines l USING (order_id)
WHERE segment = 'building' AND ordered < date '2023-03-15' AND shipped > date '2023-03-15'
GROUP BY o.order_id, ordered ORDER BY revenue DESC, o.order_id LIMIT 10;

-- revenue by nation
SELECT nation_name, sum(l.quantity * l.cents) AS revenue
FROM customers c JOIN orders o USING (customer) JOIN lines l USING (order_id) JOIN suppliers s USING (supplier)
	JOIN cities ci ON ci.city = c.city AND ci.nation = s.nation JOIN nations n ON n.nation = s.nation
	JOIN regions r USING (region)
WHERE region_name = 'Asia' AND ordered >= date '2021-01-01' AND ordered < date '2022-01-01'
GROUP BY nation_name ORDER BY revenue DESC, nation_name;

-- brand by quarter
SELECT year, quarter, brand, count(*), sum(s.quantity * s.cents)
FROM sales s JOIN days USING (day) JOIN products USING (product) JOIN stores USING (store)
WHERE brand IN ('brand 7', 'brand 70', 'brand 170') AND kind = 'mall' AND year BETWEEN 2020 AND 2022
GROUP BY year, quarter, brand ORDER BY 1, 2, 3;

-- all sales by month
SELECT year, month, kind, count(*), sum(quantity * cents)
FROM sales JOIN days USING (day) JOIN stores USING (store)
GROUP BY year, month, kind ORDER BY 1, 2, 3;

-- late orders by priority
SELECT priority, count(*) FROM orders o
WHERE ordered >= date '2021-07-01' AND ordered < date '2021-10-01'
	AND EXISTS (SELECT FROM lines l WHERE l.order_id = o.order_id AND committed < received)
GROUP BY priority ORDER BY priority;

-- small quantities
SELECT sum(l.quantity * l.cents) / 7
FROM products p JOIN lines l USING (product)
	JOIN (SELECT product, avg(quantity) AS average FROM lines GROUP BY product) a USING (product)
WHERE brand = 'brand 23' AND size < 250 AND l.quantity < 0.4 * average;

-- large orders
SELECT customer_name, o.order_id, ordered, sum(quantity)
FROM customers JOIN orders o USING (customer) JOIN lines USING (order_id)
WHERE o.order_id IN (SELECT order_id FROM lines GROUP BY order_id HAVING sum(quantity) > 290)
GROUP BY customer_name, o.order_id, ordered ORDER BY sum(quantity) DESC, o.order_id LIMIT 100;

-- orders per customer
SELECT orders, count(*) AS customers
FROM (SELECT c.customer, count(order_id) AS orders
	FROM customers c LEFT JOIN orders o ON o.customer = c.customer AND priority <> '1-urgent'
	GROUP BY c.customer) n
GROUP BY orders ORDER BY customers DESC, orders DESC;

-- visits of a department
SELECT department_name, count(*), count(DISTINCT v.customer), sum(ms)
FROM visits v JOIN products p USING (code) JOIN categories USING (category) JOIN departments USING (department)
WHERE department_name = 'department 5' AND day >= date '2019-01-01'
GROUP BY department_name;

-- visits by category
SELECT category_name, count(*), sum(ms)
FROM visits JOIN products USING (code) JOIN categories USING (category)
GROUP BY category_name ORDER BY category_name;

-- customers of a nation, in stores and on the web
SELECT customer_name, spent, orders, visits
FROM customers JOIN cities USING (city) JOIN nations USING (nation)
	JOIN (SELECT customer, sum(quantity * cents) AS spent FROM sales GROUP BY customer) s USING (customer)
	JOIN (SELECT customer, count(*) AS orders FROM orders GROUP BY customer) o USING (customer)
	LEFT JOIN (SELECT customer, count(*) AS visits FROM visits GROUP BY customer) v USING (customer)
WHERE nation_name = 'nation 11' AND segment = 'furniture'
ORDER BY spent DESC, customer_name LIMIT 50;

-- holidays
SELECT year, region_name, count(*), sum(quantity)
FROM sales JOIN days USING (day) JOIN stores USING (store) JOIN cities USING (city) JOIN nations USING (nation)
	JOIN regions USING (region)
WHERE holiday AND weekday <= 5
GROUP BY year, region_name ORDER BY 1, 2;

-- customers without orders
SELECT segment, count(*)
FROM customers c
WHERE NOT EXISTS (SELECT FROM orders o WHERE o.customer = c.customer AND ordered >= date '2022-01-01')
	AND c.customer IN (SELECT customer FROM sales WHERE day >= date '2024-01-01' AND quantity > 5)
GROUP BY segment ORDER BY segment;

-- best products of a store
SELECT store_name, product_name, revenue FROM (
	SELECT store_name, product_name, sum(s.quantity * s.cents) AS revenue,
		row_number() OVER (PARTITION BY store_name ORDER BY sum(s.quantity * s.cents) DESC, product_name) AS place
	FROM sales s JOIN stores USING (store) JOIN cities USING (city) JOIN nations USING (nation)
		JOIN products USING (product)
	WHERE nation_name = 'nation 3' AND day >= date '2022-01-01'
	GROUP BY store_name, product_name) ranked
WHERE place <= 3 ORDER BY store_name, place;

-- two snowflakes
SELECT department_name, region_name, count(*), sum(s.quantity * s.cents)
FROM sales s JOIN products p USING (product) JOIN categories ca USING (category) JOIN departments d USING (department)
	JOIN customers c USING (customer) JOIN cities ci ON ci.city = c.city JOIN nations n ON n.nation = ci.nation
	JOIN regions r USING (region)
WHERE department_name IN ('department 2', 'department 9') AND region_name = 'Oceania' AND segment = 'household'
GROUP BY department_name, region_name ORDER BY 1, 2;

-- promotions by channel
SELECT channel, brand, count(DISTINCT customer), sum(s.quantity)
FROM sales s JOIN promotions USING (promotion) JOIN products p USING (product)
WHERE channel IN ('radio', 'web') AND p.size BETWEEN 10 AND 60
GROUP BY channel, brand ORDER BY channel, brand;

-- broken goods by supplier
SELECT supplier_name, count(*), sum(l.quantity * l.cents)
FROM returns r JOIN lines l ON l.order_id = r.order_id AND l.line = r.line JOIN suppliers USING (supplier)
WHERE reason = 'broken' AND returned BETWEEN date '2020-01-01' AND date '2020-12-31'
GROUP BY supplier_name ORDER BY count(*) DESC, supplier_name LIMIT 20;

-- all ways to sell
SELECT category_name, sum(quantity), sum(amount)
FROM (SELECT product, quantity, quantity * cents AS amount FROM sales
	UNION ALL SELECT product, quantity, quantity * cents FROM lines) every
	JOIN products USING (product) JOIN categories USING (category)
WHERE brand IN (SELECT brand FROM products WHERE cents > 100000)
GROUP BY category_name ORDER BY category_name;

-- stores and web by day
SELECT year, month, sum(s.n) AS sales, sum(o.n) AS orders
FROM days LEFT JOIN (SELECT day, count(*) AS n FROM sales WHERE promotion > 0 GROUP BY day) s USING (day)
	LEFT JOIN (SELECT ordered AS day, count(*) AS n FROM orders JOIN customers USING (customer)
		WHERE segment = 'machinery' GROUP BY ordered) o USING (day)
GROUP BY year, month ORDER BY year, month;

-- suppliers who delayed orders
SELECT supplier_name, count(*)
FROM suppliers s JOIN lines l USING (supplier) JOIN orders o USING (order_id) JOIN nations USING (nation)
WHERE status = 'finished' AND received > committed AND nation_name = 'nation 20'
	AND EXISTS (SELECT FROM lines other WHERE other.order_id = l.order_id AND other.supplier <> l.supplier)
	AND NOT EXISTS (SELECT FROM lines other WHERE other.order_id = l.order_id AND other.supplier <> l.supplier
		AND other.received > other.committed)
GROUP BY supplier_name ORDER BY count(*) DESC, supplier_name LIMIT 100;
