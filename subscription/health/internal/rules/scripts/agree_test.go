// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/olmcore/olm/subscription/health/internal/rules"
)

// scripts are what is written for one kind, ready to run.
type scripts struct {
	lua                         string
	inProgress, failed, current cel.Program
}

func scriptsOf(t testing.TB, kind string) *scripts {
	script, err := rules.ArgoCD(kind)
	require.NoError(t, err)
	check, err := rules.Flux(kind)
	require.NoError(t, err)
	return &scripts{script, program(t, check.InProgress), program(t, check.Failed), program(t, check.Current)}
}

// program reads an expression in the environment of Flux: parsed and not checked, with its extensions.
func program(t testing.TB, expression string) cel.Program {
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	require.NoError(t, err)
	parsed, issues := env.Parse(expression)
	require.NoError(t, issues.Err())
	p, err := env.Program(parsed, cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(100))
	require.NoError(t, err)
	return p
}

// argoCD runs the script in the environment of Argo CD: the libraries base, table and package, and a second at most.
func (s *scripts) argoCD(object map[string]any) (status, message string, err error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", luaValue(l, object))
	if err := l.DoString(s.lua); err != nil {
		return "", "", err
	}
	answer, isTable := l.Get(-1).(*lua.LTable)
	if !isTable {
		return "", "", fmt.Errorf("the script returned %s", l.Get(-1).Type())
	}
	text, isText := answer.RawGetString("message").(lua.LString)
	if !isText {
		return "", "", fmt.Errorf("the message is a %s", answer.RawGetString("message").Type())
	}
	return answer.RawGetString("status").String(), string(text), nil
}

// luaValue is a JSON value in Lua: a null is nothing, so that a list is shorter by it.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case json.Number:
		return lua.LString(v)
	case []any:
		list := l.CreateTable(len(v), 0)
		for _, item := range v {
			list.Append(luaValue(l, item))
		}
		return list
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetH(lua.LString(key), luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}

// flux evaluates the expressions in the order of Flux. An error makes it look again: that is in progress.
func (s *scripts) flux(object map[string]any) (string, error) {
	for _, e := range []struct {
		p      cel.Program
		status string
	}{{s.inProgress, "InProgress"}, {s.failed, "Failed"}, {s.current, "Current"}} {
		value, _, err := e.p.ContextEval(context.Background(), object)
		if err != nil {
			return "InProgress", err
		}
		is, isBool := value.(types.Bool)
		if !isBool {
			return "", fmt.Errorf("the expression is no bool: %v", value)
		}
		if bool(is) {
			return e.status, nil
		}
	}
	return "none", fmt.Errorf("no expression is true")
}

// agree demands that both scripts say what rules.OfContent says. Flux may only fail on an object that lacks a field at
// its top, and says that it is in progress then.
func (s *scripts) agree(t testing.TB, object map[string]any) rules.Result {
	want, err := rules.OfContent(object)
	require.NoError(t, err)
	show := func() string {
		data, err := json.Marshal(object)
		require.NoError(t, err)
		return string(data)
	}
	status, message, err := s.argoCD(object)
	if err != nil || status != string(want.Status) || message != want.Message {
		t.Fatalf("Argo CD says %s %q (%v), and the table %s %q, of %s", status, message, err, want.Status, want.Message, show())
	}
	kstatus, err := s.flux(object)
	switch {
	case err != nil && lacksTop(object, err):
		require.NotEqual(t, rules.Healthy, want.Status, show())
	case err != nil || kstatus != want.KStatus():
		t.Fatalf("Flux says %s (%v), and the table %s, of %s", kstatus, err, want.KStatus(), show())
	}
	return want
}

// lacksTop reports whether an error is about a field at the top that an object lacks.
func lacksTop(object map[string]any, err error) bool {
	for _, field := range []string{"metadata", "spec", "status"} {
		if _, has := object[field]; !has && strings.Contains(err.Error(), "no such attribute") && strings.Contains(err.Error(), field) {
			return true
		}
	}
	return false
}
