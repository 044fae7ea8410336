// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// luaHead contains the functions that a script needs. Argo CD provides no string library, and fields of the object may
// have any type.
const luaHead = `-- Health of %[1]s objects for Argo CD, written from the table of
-- github.com/olmcore/olm/subscription/health/internal/rules: change it there.
-- Key in argocd-cm: resource.customizations.health.%[2]s_%[1]s
local hs = {}

local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then
      return nil
    end
    value = value[key]
  end
  return value
end

local function text(value)
  if type(value) == "string" then
    return value
  end
  return ""
end

local function oneOf(value, list)
  for _, entry in ipairs(list) do
    if value == entry then
      return true
    end
  end
  return false
end

local function condition(kind, status, reasons)
  local conditions = at(obj, "status", "conditions")
  if type(conditions) ~= "table" then
    return nil
  end
  for _, c in ipairs(conditions) do
    if type(c) == "table" and c.type == kind and c.status == status and (reasons == nil or oneOf(c.reason, reasons)) then
      return c
    end
  end
  return nil
end

local function said(value, otherwise)
  if text(value) ~= "" then
    return value
  end
  return otherwise
end
`

// ArgoCD returns the Lua script with which Argo CD assesses the health of a kind. Store the script in the ConfigMap
// argocd-cm under the key resource.customizations.health.operators.coreos.com_<kind>. ArgoCD returns an
// *olmcore.InputError for a kind that has no table.
func ArgoCD(kind string) (string, error) {
	t := tableOf(kind)
	if t == nil {
		return "", noTable(kind)
	}
	var b strings.Builder
	fmt.Fprintf(&b, luaHead, kind, v1alpha1.GroupName)
	for i := range t.Rows {
		r := &t.Rows[i]
		fmt.Fprintf(&b, "\n-- %s\n", r.Reason)
		indent := ""
		if len(r.When) > 0 {
			fmt.Fprintf(&b, "if %s then\n", r.lua())
			indent = "  "
		}
		fmt.Fprintf(&b, "%[1]shs.status = %[2]q\n%[1]shs.message = %[3]s\n%[1]sreturn hs\n", indent, r.Status, r.luaMessage())
		if indent != "" {
			b.WriteString("end\n")
		}
	}
	n := len(t.Rows)
	if n == 0 || len(t.Rows[n-1].When) > 0 {
		fmt.Fprintf(&b, "\nhs.status = %q\nhs.message = \"\"\nreturn hs\n", Unknown)
	}
	return b.String(), nil
}

func noTable(kind string) error {
	return &olmcore.InputError{Field: "kind", Problem: fmt.Sprintf("is %q, for which there is no table", kind)}
}

// lua returns the condition of a row.
func (r *Row) lua() string {
	all := make([]string, len(r.When))
	for i := range r.When {
		all[i] = r.When[i].lua()
	}
	return strings.Join(all, " and ")
}

// lua returns the condition of a Test.
func (t *Test) lua() string {
	var all []string
	switch {
	case t.Field != "" && len(t.In) == 0:
		all = append(all, "text("+luaAt(t.Field)+") ~= \"\"")
	case t.Field != "" && len(t.In) == 1:
		all = append(all, luaAt(t.Field)+" == "+strconv.Quote(t.In[0]))
	case t.Field != "":
		all = append(all, "oneOf("+luaAt(t.Field)+", "+luaList(t.In)+")")
	}
	if t.True != "" {
		all = append(all, luaAt(t.True)+" == true")
	}
	if t.Condition != "" {
		all = append(all, t.luaCondition()+" ~= nil")
	}
	text := strings.Join(all, " and ")
	if t.Not {
		return "not (" + text + ")"
	}
	return text
}

func (t *Test) luaCondition() string {
	text := "condition(" + strconv.Quote(t.Condition) + ", " + strconv.Quote(t.Status)
	if len(t.Reasons) > 0 {
		text += ", " + luaList(t.Reasons)
	}
	return text + ")"
}

func (r *Row) luaMessage() string {
	var all []string
	for _, p := range parts(r.Message) {
		if p.Path != "" {
			all = append(all, "text("+luaAt(p.Path)+")")
		} else {
			all = append(all, strconv.Quote(p.Text))
		}
	}
	text := strings.Join(all, " .. ")
	if text == "" {
		text = `""`
	}
	switch t := r.condition(); {
	case r.Says == SaysCondition && t != nil:
		return "said(at(" + t.luaCondition() + ", \"message\"), " + text + ")"
	case r.Says != "":
		return "said(" + luaAt(r.Says) + ", " + text + ")"
	}
	return text
}

// luaAt returns the expression for the value at a path of the object.
func luaAt(path string) string {
	return "at(obj, " + strings.Trim(luaList(strings.Split(path, ".")), "{}") + ")"
}

func luaList(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = strconv.Quote(w)
	}
	return "{" + strings.Join(all, ", ") + "}"
}
