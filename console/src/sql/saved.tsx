// The statements that ran in this tab, and those that the user has saved under a name.
import { Saved } from "../saved";
import { holder } from "../session";
import { texts } from "../texts";
import { Button, Popup } from "../ui";
import { save } from "../values";

export interface Past {
  query: string;
  database: string;
  at: string;
}

interface SavedQuery {
  query: string;
  database: string;
}

export const History = ({ past, onChoose }: { past: readonly Past[]; onChoose: (past: Past) => void }) => (
  <Popup icon="table" label={texts.sql.history} wide>
    {(close) =>
      past.length === 0 ? (
        <p class="dim">{texts.sql.noHistory}</p>
      ) : (
        <ul class="history">
          {past.map((one) => (
            <li key={one.at}>
              <button
                type="button"
                class="link"
                onClick={() => {
                  close();
                  onChoose(one);
                }}
              >
                <code>{one.query}</code>
              </button>
            </li>
          ))}
        </ul>
      )
    }
  </Popup>
);

interface SavedProps {
  /** Returns what the editor has now. */
  present: () => SavedQuery;
  onChoose: (saved: SavedQuery) => void;
}

export const SavedQueries = ({ present, onChoose }: SavedProps) => (
  <Saved
    label={texts.sql.saved}
    storedAs="sql:saved"
    nameLabel={texts.sql.name}
    hint={texts.sql.noSaved}
    present={present}
    onChoose={onChoose}
    describe={({ database, query }) => (
      <>
        <span class="dim small">{database}</span>
        <code>{query}</code>
      </>
    )}
    below={(list) => (
      <div>
        <Button
          icon="download"
          label={texts.sql.exportSaved}
          onClick={() =>
            save(`queries-${holder.value.project}.json`, `${JSON.stringify(list, null, 2)}\n`, "application/json")
          }
        />
      </div>
    )}
  />
);
