// A client of the Model Context Protocol that uses npm's @modelcontextprotocol/sdk. The end-to-end suite runs it:
//
//   node mcp.mjs <URL> <steps>   connects, and prints a JSON object: server, version, instructions, and the result of each step
//
// A step is [method of the client, params], such as ["callTool", {"name": "list_tables"}]. SELKIE_KEY is the key.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, steps] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.SELKIE_KEY}` };
const transport = new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } });
const client = new Client({ name: "selkie-tests", version: "1.0.0" });
await client.connect(transport);

const results = [];
for (const [method, params] of JSON.parse(steps)) {
  const outcome = client[method](params);
  results.push(await outcome.catch((error) => ({ code: error.code, message: error.message })));
}
const [server, instructions] = [client.getServerVersion(), client.getInstructions()];
console.log(JSON.stringify({ server, version: transport.protocolVersion, instructions, results }));
await client.close();
