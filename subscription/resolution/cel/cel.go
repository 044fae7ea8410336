// SPDX-License-Identifier: Apache-2.0

// Package cel evaluates the CEL constraints of bundles for package resolution. Set resolution.Input.CEL to the result
// of [New]. It is a separate Go module, so that only its users depend on a CEL library.
package cel

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// CostLimit limits one evaluation, in units of CEL's cost model. A rule that exceeds the limit is not satisfied.
const CostLimit = 1_000_000

// New returns a compiler for the CEL rules that OLM supports. A rule is an expression of type bool over the variable
// "properties", a list of maps with the keys type and value. The rule may call semver_compare(a, b), which returns -1,
// 0 or 1. The compiler is safe for concurrent use. New returns an error only if the CEL environment cannot be created.
//
// Source: operator-framework/api pkg/constraints, NewCelEnvironment. Differs: OLM does not limit the cost of an
// evaluation. This library limits it.
func New() (resolution.CELCompiler, error) {
	env, err := cel.NewEnv(
		cel.Variable("properties", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Function(
			"semver_compare",
			cel.Overload("semver_compare", []*cel.Type{cel.DynType, cel.DynType}, cel.IntType, cel.BinaryBinding(compare)),
		),
	)
	if err != nil {
		return nil, err
	}
	return compiler{env}, nil
}

func compare(a, b ref.Val) ref.Val {
	x, err := semver.ParseTolerant(fmt.Sprint(a.Value()))
	if err != nil {
		return types.NewErr("%v is no version: %v", a.Value(), err)
	}
	y, err := semver.ParseTolerant(fmt.Sprint(b.Value()))
	if err != nil {
		return types.NewErr("%v is no version: %v", b.Value(), err)
	}
	return types.Int(x.Compare(y))
}

type compiler struct{ env *cel.Env }

// Compile implements resolution.CELCompiler. It returns an error if the rule is invalid or its type is not bool.
func (c compiler) Compile(rule string) (resolution.CELProgram, error) {
	ast, issues := c.env.Compile(rule)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, errors.New("cel expressions must have type Bool")
	}
	p, err := c.env.Program(ast, cel.CostLimit(CostLimit))
	if err != nil {
		return nil, err
	}
	return program{p}, nil
}

type program struct{ cel.Program }

// Satisfied implements resolution.CELProgram. It returns false if the evaluation fails.
func (p program) Satisfied(properties []olmcore.Property) bool {
	list := make([]map[string]any, 0, len(properties))
	for _, property := range properties {
		var value any
		if err := json.Unmarshal(property.Value, &value); err != nil {
			continue // no rule can ask for what is no JSON
		}
		list = append(list, map[string]any{"type": property.Type, "value": value})
	}
	result, _, err := p.Eval(map[string]any{"properties": list})
	if err != nil {
		return false
	}
	ok, isBool := result.Value().(bool)
	return isBool && ok
}
