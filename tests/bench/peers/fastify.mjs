// A server written by hand with fastify and mysql2, for exactly the requests of the comparison.
// Usage: node fastify.mjs SOCKET DATABASE POOL. Prints its address as the first line.
import Fastify from "fastify";
import mysql from "mysql2/promise";

const [socketPath, database, connectionLimit] = process.argv.slice(2);
const pool = mysql.createPool({ socketPath, user: "root", database, connectionLimit: Number(connectionLimit) });
const server = Fastify();
const tables = `/api/v1/crud/${database}`;

server.get(`${tables}/posts/:id`, async (request, reply) => {
  const [rows] = await pool.execute("SELECT * FROM posts WHERE id = ?", [request.params.id]);
  if (rows.length === 0) return reply.code(404).send({ success: false, payload: null });
  return { success: true, payload: rows[0] };
});

server.get(`${tables}/posts`, async (request) => {
  const text = "SELECT * FROM posts WHERE is_published = 1 AND category = ? ORDER BY id DESC LIMIT ?";
  const [rows] = await pool.execute(text, [request.query.category, request.query.limit]);
  return { success: true, payload: rows };
});

server.post(`${tables}/inbox`, async (request) => {
  const fields = ["title", "body", "category", "price", "is_published", "views", "published_at"];
  const text = `INSERT INTO inbox (${fields}) VALUES (?, ?, ?, ?, ?, ?, ?)`;
  const [result] = await pool.execute(
    text,
    fields.map((field) => request.body[field]),
  );
  return { success: true, payload: result.insertId };
});

console.log((await server.listen({ host: "127.0.0.1", port: 0 })).replace("http://", ""));
