// The issuers of the project, whose tokens sign its users in: list, set, remove.
import { isSelkieError } from "@selkie/client";
import { useState } from "preact/hooks";
import { api } from "../session";
import { texts } from "../texts";
import { Button, Confirm, Problem, useAttempt, useLoad, useTitle, Warnings } from "../ui";
import { type Issuer, IssuerForm } from "./issuer";
import { at, roleNames } from "./keys";
import { type Column, List, Loaded } from "./parts";

const words = texts.issuers;

const pathOf = (issuer: string): string => `issuers/${encodeURIComponent(issuer)}`;

function rolesOf({ role, roleClaim, map }: Issuer): string {
  if (!roleClaim) return role ?? "";
  const values = Object.entries(map).map(([value, name]) => `${value} = ${name}`);
  return words.claim(roleClaim, values.join(", "), role ?? "");
}

export default function Issuers() {
  const issuers = useLoad(() => api().request<Issuer[]>("GET", "issuers"), []);
  const roles = useLoad(roleNames, []);
  const [changing, setChanging] = useState<Issuer | "new" | null>(null);
  const [removing, setRemoving] = useState<Issuer | null>(null);
  const [told, setTold] = useState<string[] | null>(null);
  const [error, attempt] = useAttempt();
  const [isOperators, setOperators] = useState(false);
  useTitle(words.heading);
  const change = (work: () => Promise<{ warnings?: string[] }>) =>
    attempt(async () => {
      setRemoving(null);
      setTold(null);
      const { warnings = [] } = await work().catch((refused: unknown) => {
        if (isSelkieError(refused) && refused.message.includes("may set the client id")) setOperators(true);
        throw refused;
      });
      setChanging(null);
      setTold(warnings);
      issuers.again();
    });
  const columns: Column<Issuer>[] = [
    {
      head: words.issuer,
      isName: true,
      of: (issuer) => (
        <button type="button" class="link" aria-label={words.change(issuer.issuer)} onClick={() => setChanging(issuer)}>
          {issuer.issuer}
        </button>
      ),
    },
    { head: words.audience, of: ({ audience }) => audience },
    { head: words.keysFrom, of: ({ jwksUrl }) => jwksUrl ?? words.stored },
    { head: words.roles, of: rolesOf },
    { head: words.console, of: ({ clientId }) => clientId !== null && words.signsIn },
    { head: words.createdAt, of: ({ createdAt }) => at(createdAt) },
    {
      head: "",
      of: (issuer) => (
        <Button
          icon="trash"
          bare
          look="danger"
          label={words.removeLabel(issuer.issuer)}
          onClick={() => setRemoving(issuer)}
        />
      ),
    },
  ];
  return (
    <div class="manage">
      <div class="row">
        <h1>{words.heading}</h1>
        <span class="grow" />
        <Button
          icon="plus"
          label={words.add}
          expanded={changing === "new"}
          onClick={() => setChanging(changing === "new" ? null : "new")}
        />
      </div>
      <p class="dim">{words.hint}</p>
      {changing && (
        <IssuerForm
          key={changing === "new" ? "" : changing.issuer}
          issuer={changing === "new" ? null : changing}
          roles={roles.value ?? []}
          isOperators={isOperators}
          onSave={(name, body) => void change(() => api().request("PUT", pathOf(name), { body }))}
          onClose={() => setChanging(null)}
        />
      )}
      {error !== null && <Problem error={error} />}
      {told && (
        <p class="note" role="status">
          {words.saved}
        </p>
      )}
      <Warnings of={told ?? []} />
      <Loaded load={issuers}>
        {(list) =>
          list.length === 0 ? (
            <p class="dim">{words.none}</p>
          ) : (
            <List label={words.heading} rows={list} columns={columns} keyOf={({ issuer }) => issuer} />
          )
        }
      </Loaded>
      {removing && (
        <Confirm
          label={words.remove}
          text={words.confirm(removing.issuer)}
          onYes={() => void change(() => api().request("DELETE", pathOf(removing.issuer)))}
          onClose={() => setRemoving(null)}
        />
      )}
    </div>
  );
}
