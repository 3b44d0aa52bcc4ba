// Shows the structure of a table: fields, indexes, relations.
import type { Schema } from "../schema";
import { holder, to } from "../session";
import { texts } from "../texts";
import { Icon, Lazy } from "../ui";

const words = texts.structure;

export function Structure({ database, schema }: { database: string; schema: Schema }) {
  return (
    <div class="structure" tabIndex={0}>
      <section>
        <h2>{words.fields}</h2>
        <table>
          <thead>
            <tr>
              <th scope="col">{words.name}</th>
              <th scope="col">{words.type}</th>
              <th scope="col">{words.nullable}</th>
              <th scope="col">{words.default}</th>
              <th scope="col">{words.key}</th>
              <th scope="col">{words.comment}</th>
            </tr>
          </thead>
          <tbody>
            {schema.schema.map((field) => (
              <tr key={field.name}>
                <th scope="row">{field.name}</th>
                <td>
                  <code>{field.jsonType ?? field.type}</code>
                </td>
                <td>{field.nullable ? words.yes : words.no}</td>
                <td>
                  {field.autoIncrement ? (
                    <span class="dim">{words.auto}</span>
                  ) : field.generated ? (
                    <span class="dim">{words.generated}</span>
                  ) : field.default === null ? (
                    ""
                  ) : (
                    <code>{field.default === "" ? '""' : field.default}</code>
                  )}
                </td>
                <td>
                  {field.primaryKey && <span class="tag main">{words.primary}</span>}
                  {field.unique && !field.primaryKey && <span class="tag">{words.unique}</span>}
                  {field.references && (
                    <a href={to("structure", [database, field.references.table])}>
                      <Icon name="link" /> {field.references.table}.{field.references.field}
                    </a>
                  )}
                </td>
                <td class="dim">{field.comment}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section>
        <h2>{words.relations}</h2>
        {schema.relations.length === 0 ? (
          <p class="dim">{words.noRelations}</p>
        ) : (
          <table>
            <thead>
              <tr>
                <th scope="col">{words.name}</th>
                <th scope="col">{words.kind}</th>
                <th scope="col">{words.target}</th>
                <th scope="col">{words.using}</th>
              </tr>
            </thead>
            <tbody>
              {schema.relations.map((relation) => {
                return (
                  <tr key={relation.name}>
                    <th scope="row">{relation.name}</th>
                    <td>{relation.kind === "one" ? words.one : words.many}</td>
                    <td>
                      <a href={to("structure", [database, relation.table])}>{relation.table}</a>
                      {relation.through && (
                        <span class="dim">
                          {" "}
                          {words.through} {relation.through}
                        </span>
                      )}
                    </td>
                    <td>
                      <code>
                        {relation.fields.join(", ")} → {relation.references.join(", ")}
                      </code>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        )}
        <p>
          <a href={to("diagram", [database])}>
            <Icon name="diagram" /> {words.openDiagram}
          </a>
        </p>
      </section>
      {holder.value.access === "full" ? (
        <Lazy load={() => import("../design/structure")} />
      ) : (
        <section>
          <h2>{words.indexes}</h2>
          <p class="dim">{words.noIndexes}</p>
        </section>
      )}
    </div>
  );
}
