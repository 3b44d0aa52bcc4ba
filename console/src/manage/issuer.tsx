// The form of one issuer: whose tokens, by which keys, with which roles.
import { useEffect, useState } from "preact/hooks";
import { redirectUri } from "../oidc";
import { holder } from "../session";
import { texts } from "../texts";
import { Button } from "../ui";
import { jsonText, parsed } from "../values";
import { claimsOf } from "./keys";
import { TextField } from "./parts";

const words = texts.issuers;

/** An issuer as the API returns it. */
export interface Issuer {
  issuer: string;
  audience: string;
  jwksUrl: string | null;
  jwks: unknown;
  roleClaim: string | null;
  role: string | null;
  map: Record<string, string>;
  clientId: string | null;
  createdAt: string;
}

interface Props {
  /** The issuer that is changed; null for a new one. */
  issuer: Issuer | null;
  roles: readonly string[];
  /** Whether the service has refused the client id because only the operator may set it. */
  isOperators: boolean;
  onSave: (issuer: string, body: Record<string, unknown>) => void;
  onClose: () => void;
}

export function IssuerForm({ issuer, roles, isOperators, onSave, onClose }: Props) {
  const [name, setName] = useState(issuer?.issuer ?? "");
  const [audience, setAudience] = useState(issuer?.audience ?? "");
  const [isByUrl, setByUrl] = useState(!issuer || issuer.jwksUrl !== null);
  const [jwksUrl, setJwksUrl] = useState(issuer?.jwksUrl ?? "");
  const [jwks, setJwks] = useState(issuer?.jwks ? jsonText(issuer.jwks, 2) : "");
  const [roleClaim, setRoleClaim] = useState(issuer?.roleClaim ?? "");
  const [role, setRole] = useState(issuer?.role ?? "");
  const [map, setMap] = useState<[string, string][]>(Object.entries(issuer?.map ?? {}));
  const [wantedId, setClientId] = useState(issuer?.clientId ?? "");
  const clientId = isOperators ? (issuer?.clientId ?? "") : wantedId;
  const [isWrong, setWrong] = useState(false);
  const [back, setBack] = useState("");
  useEffect(() => {
    // Browsers have no `subtle` where the console is opened by plain HTTP.
    if (crypto.subtle) void redirectUri(name).then(setBack);
  }, [name]);
  const submit = (event: Event) => {
    event.preventDefault();
    const isSet = isByUrl || (jwks.trim() !== "" && claimsOf(jwks) !== undefined);
    setWrong(!isSet);
    if (!isSet) return;
    onSave(name, {
      audience,
      ...(isByUrl ? { jwksUrl } : { jwks: parsed(jwks, "json") }),
      ...(roleClaim ? { roleClaim, map: Object.fromEntries(map) } : {}),
      ...(role ? { role } : {}),
      ...(clientId ? { clientId } : {}),
    });
  };
  const change = (at: number, to: [string, string]) => setMap(map.map((own, index) => (index === at ? to : own)));
  const command = [
    `selkie issuer add --project ${holder.value.project} --issuer ${name || "<URL>"} --audience ${audience || "<AUDIENCE>"}`,
    isByUrl ? `--jwks-url ${jwksUrl || "<URL>"}` : "--jwks <FILE>",
    `--client-id ${wantedId || "<ID>"}`,
  ].join(" ");
  return (
    <form onSubmit={submit}>
      {!issuer && (
        <TextField
          label={words.issuer}
          class="grow"
          type="url"
          value={name}
          required
          placeholder="https://id.example.com"
          title={words.issuerHint}
          maxLength={255}
          onChange={setName}
        />
      )}
      <TextField
        label={words.audience}
        value={audience}
        required
        title={words.audienceHint}
        maxLength={255}
        onChange={setAudience}
      />
      <label>
        {words.keysFrom}
        <select value={String(isByUrl)} onChange={(event) => setByUrl(event.currentTarget.value === "true")}>
          <option value="true">{words.byUrl}</option>
          <option value="false">{words.bySet}</option>
        </select>
      </label>
      {isByUrl ? (
        <TextField
          label={words.jwksUrl}
          class="grow"
          type="url"
          value={jwksUrl}
          required
          placeholder="https://id.example.com/.well-known/jwks.json"
          onChange={setJwksUrl}
        />
      ) : (
        <label class="wide">
          {words.jwks}
          <textarea
            class="mono"
            rows={5}
            spellcheck={false}
            value={jwks}
            aria-invalid={isWrong || undefined}
            onInput={(event) => setJwks(event.currentTarget.value)}
          />
        </label>
      )}
      {isWrong && (
        <p class="fault wide" role="alert">
          {words.notJwks}
        </p>
      )}
      <TextField label={words.roleClaim} value={roleClaim} placeholder="role" maxLength={255} onChange={setRoleClaim} />
      <label>
        {words.role}
        <select value={role} onChange={(event) => setRole(event.currentTarget.value)}>
          <option value="">{words.noRole}</option>
          <Options of={roles} chosen={role} />
        </select>
      </label>
      {roleClaim && (
        <fieldset class="wide stack">
          <legend>{words.map}</legend>
          {map.map(([value, meant], at) => (
            <div class="row" key={at}>
              <input
                aria-label={words.value(at + 1)}
                value={value}
                onInput={(event) => change(at, [event.currentTarget.value, meant])}
              />
              <select
                aria-label={words.means(at + 1)}
                value={meant}
                onChange={(event) => change(at, [value, event.currentTarget.value])}
              >
                <Options of={roles} chosen={meant} />
                <option value="read">{words.read}</option>
                <option value="full">{words.full}</option>
              </select>
              <Button
                icon="close"
                bare
                look="quiet"
                label={words.removeValue(at + 1)}
                onClick={() => setMap(map.filter((_, index) => index !== at))}
              />
            </div>
          ))}
          <div class="row">
            <Button icon="plus" label={words.addValue} onClick={() => setMap([...map, ["", roles[0] ?? "read"]])} />
            <span class="dim">{words.mapHint}</span>
          </div>
        </fieldset>
      )}
      <TextField
        label={words.clientId}
        value={clientId}
        maxLength={255}
        isDisabled={isOperators}
        onChange={setClientId}
      />
      <p class="dim wide">
        {words.clientHint} <code>{back}</code>
      </p>
      <p class="dim wide">
        {isOperators && <strong>{words.clientRefused} </strong>}
        {words.clientOperator} <code>{command}</code>
      </p>
      <Button type="submit" look="main" label={words.save} />
      <Button label={texts.cancel} onClick={onClose} />
    </form>
  );
}

const Options = ({ of, chosen }: { of: readonly string[]; chosen: string }) => (
  <>
    {chosen && !of.includes(chosen) && chosen !== "full" && chosen !== "read" && <option>{chosen}</option>}
    {of.map((name) => (
      <option key={name}>{name}</option>
    ))}
  </>
);
