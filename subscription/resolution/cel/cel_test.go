// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"strings"
	"testing"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/cel"
)

// TestRules has cases of OLM.
//
// OLM's cases: CEL: an API, an API that no bundle has, a version; CEL rules.
func TestRules(t *testing.T) {
	compiler, err := cel.New()
	if err != nil {
		t.Fatal(err)
	}
	properties := []olmcore.Property{
		{Type: "olm.package", Value: []byte(`{"packageName":"a","version":"1.2.0"}`)},
		{Type: "olm.gvk", Value: []byte(`{"group":"g","kind":"K","version":"v1"}`)},
		{Type: "broken", Value: []byte(`{`)},
		{Type: "number", Value: []byte(`7`)},
	}
	version := `properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.2.0") `
	for rule, want := range map[string]bool{
		version + `== 0)`: true,
		version + `!= 0)`: false,
		version + `< 0)`:  false,
		version + `> -1)`: true,
		`properties.exists(p, p.type == "olm.gvk" && p.value == {"group":"g","kind":"K","version":"v1"})`: true,
		`properties.exists(p, p.type == "olm.gvk" && p.value.kind == "L")`:                                false,
		`properties.exists(p, p.type == "broken")`:                                                        false,
		`properties.exists(p, p.type == "number" && p.value == 7.0)`:                                      true,
		`semver_compare("x", "1.0.0") == 0`:                                                               false,
		`properties[9].type == "x"`:                                                                       false,
		`true`:                                                                                            true,
	} {
		program, err := compiler.Compile(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if got := program.Satisfied(properties); got != want {
			t.Errorf("%s: %v, want %v", rule, got, want)
		}
	}
	for rule, want := range map[string]string{
		`1 + 1`:                "cel expressions must have type Bool",
		`unknown("x")`:         "undeclared reference to 'unknown'",
		`properties.exists(p,`: "Syntax error",
	} {
		if _, err := compiler.Compile(rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}

func TestExpensiveRulesAreAborted(t *testing.T) {
	compiler, err := cel.New()
	if err != nil {
		t.Fatal(err)
	}
	var properties []olmcore.Property
	for range 200 {
		properties = append(properties, olmcore.Property{Type: "x", Value: []byte("1")})
	}
	program, err := compiler.Compile(`properties.all(a, properties.all(b, properties.all(c, a.type == b.type && b.type == c.type)))`)
	if err != nil {
		t.Fatal(err)
	}
	if program.Satisfied(properties) {
		t.Error("eight million steps were not cut off")
	}
	if !program.Satisfied(properties[:5]) {
		t.Error("a cheap evaluation was cut off")
	}
}

// FuzzRules: no rule and no properties make the evaluation panic or last.
func FuzzRules(f *testing.F) {
	f.Add(`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.2.0") == 0)`, `{"version":"1.2.0"}`)
	f.Add(`semver_compare(1, null) == 0 || properties[0].value.x[3].y == 1u`, `[1,{"x":null}]`)
	f.Add(`properties.all(a, properties.all(b, a == b))`, `1e999`)
	compiler, err := cel.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, rule, value string) {
		program, err := compiler.Compile(rule)
		if err != nil {
			return
		}
		program.Satisfied(nil)
		program.Satisfied([]olmcore.Property{{Type: "olm.package", Value: []byte(value)}, {Type: rule, Value: []byte(value)}})
	})
}
