-- The analytic queries, over the data of analytic_data.sql. A line "-- name" begins a query. The rows of each are
-- determined: what LIMIT keeps is ordered by a unique key.

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
