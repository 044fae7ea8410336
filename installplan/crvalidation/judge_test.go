// SPDX-License-Identifier: Apache-2.0

package crvalidation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/olmcore"
)

// definition returns the CustomResourceDefinition of kind Cron with these versions, each in the form "name: schema".
func definition(t testing.TB, established bool, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "crons.example.com"
	crd.Spec.Group, crd.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Cron", ListKind: "CronList", Plural: "crons", Singular: "cron"}
	for i, text := range versions {
		var named map[string]*apiextensionsv1.JSONSchemaProps
		require.NoError(t, yaml.Unmarshal([]byte(text), &named))
		for name, props := range named {
			v := apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: i == 0}
			if props != nil {
				v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props}
			}
			crd.Spec.Versions = append(crd.Spec.Versions, v)
		}
	}
	if established {
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue}, {Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
	}
	return crd
}

// spec returns a version whose spec has these properties.
func spec(properties string, more ...string) string {
	text := "v1: {type: object, properties: {spec: {type: object, properties: {" + properties + "}"
	for _, m := range more {
		text += ", " + m
	}
	return text + "}}}"
}

func cron(t testing.TB, name, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON(fmt.Appendf(nil, "{apiVersion: example.com/v1, kind: Cron, metadata: {namespace: ops, name: %q}, spec: %s}", name, spec))
	require.NoError(t, err)
	require.NoError(t, u.UnmarshalJSON(data))
	return u
}

// reader is a Reader that returns the same custom resources in every version.
type reader struct {
	objects []olmcore.Object
	fail    error
}

func (r reader) Get(context.Context, schema.GroupVersionKind, string, string) (olmcore.Object, error) {
	return nil, errors.New("nobody gets")
}

func (r reader) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, _ labels.Selector) ([]olmcore.Object, error) {
	if gvk.Group != "example.com" || gvk.Kind != "Cron" || namespace != "" {
		return nil, fmt.Errorf("unexpected list of %s in %q", gvk, namespace)
	}
	return r.objects, r.fail
}

// judge returns the verdicts of Judge about the change of version v1.
func judge(t testing.TB, before, after *apiextensionsv1.CustomResourceDefinition, objects ...olmcore.Object) []installplan.ResourceVerdict {
	t.Helper()
	verdicts, err := crvalidation.Judge(t.Context(), reader{objects: objects},
		[]installplan.SchemaChange{{Before: before, After: after, Versions: []string{"v1"}}})
	require.NoError(t, err)
	return verdicts
}

// TestInvalidCustomResourcesAreFound contains a case for each kind of constraint in a schema, and for what the API
// server does before validation.
func TestInvalidCustomResourcesAreFound(t *testing.T) {
	const anything = "v1: {type: object, x-kubernetes-preserve-unknown-fields: true}"
	for name, c := range map[string]struct {
		before, after string
		resource      string
		old, new      []string
	}{
		"a valid resource": {spec("replicas: {type: integer}"), spec("replicas: {type: integer, maximum: 10}"), "{replicas: 10}", nil, nil},
		"a bound that is lower": {
			spec("replicas: {type: integer}"), spec("replicas: {type: integer, maximum: 9}"), "{replicas: 10}", nil, []string{"[].spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9"},
		},
		"a bound that is higher": {spec("replicas: {type: integer}"), spec("replicas: {type: integer, minimum: 3}"), "{replicas: 2}", nil,
			[]string{"[].spec.replicas: Invalid value: 2: spec.replicas in body should be greater than or equal to 3"}},
		"a whole number against a fraction": {
			spec("replicas: {type: number}"), spec("replicas: {type: number, minimum: 0.5}"), "{replicas: 1}", nil, nil,
		},
		"an integer where there was a number": {spec("replicas: {type: number}"), spec("replicas: {type: integer}"), "{replicas: 1.5}", nil,
			[]string{`[].spec.replicas: Invalid value: "number": spec.replicas in body must be of type integer: "number"`,
				`[]: Invalid value: "": Checked value must be of type integer (default format) in spec.replicas`}},
		"fields that are required": {spec("a: {type: string}"), spec("a: {type: string}, b: {type: string}, c: {type: string}", "required: [b, c]"), "{a: x}", nil,
			[]string{"[].spec.b: Required value", "[].spec.c: Required value"}},
		"a required field with a default": {
			spec("a: {type: string}"), spec("a: {type: string}, b: {type: string, default: x}", "required: [b]"), "{a: x}", nil, nil,
		},
		"a required null with a default": {
			spec("a: {type: string, nullable: true}"), spec("a: {type: string, default: x}", "required: [a]"), "{a: null}", nil, nil,
		},
		"an enumeration": {
			spec("a: {type: string}"), spec("a: {type: string, enum: [red, blue]}"), "{a: green}", nil, []string{`[].spec.a: Unsupported value: "green": supported values: "red", "blue"`},
		},
		"a field that was removed": {spec("a: {type: integer}"), spec("b: {type: string}"), "{a: 1}", nil, nil},
		"an unknown field that is kept": {anything, "v1: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}}}",
			"{a: 1, b: 2}", nil, []string{`[].spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"`}},
		"an unknown field that a rule sees": {
			spec("a: {type: integer}"), spec("b: {type: string}", `x-kubernetes-validations: [{rule: "!has(self.b)"}]`), "{a: 1}", nil, nil,
		},
		"a CEL rule": {spec("min: {type: integer}, max: {type: integer}"), spec("min: {type: integer}, max: {type: integer}", `x-kubernetes-validations: [{rule: "self.min <= self.max", message: too large}]`),
			"{min: 2, max: 1}", nil, []string{`[].spec: Invalid value: too large`}},
		"a CEL rule about a change": {
			spec("a: {type: integer}"), spec("a: {type: integer}", `x-kubernetes-validations: [{rule: "self.a == oldSelf.a"}]`), "{a: 1}", nil, nil,
		},
		"a set with duplicates": {spec("a: {type: array, items: {type: string}}"), spec("a: {type: array, x-kubernetes-list-type: set, items: {type: string}}"), "{a: [x, x]}", nil,
			[]string{`[].spec.a[1]: Duplicate value: "x"`}},
		"a format": {spec("a: {type: string}"), spec("a: {type: string, format: date-time}"), "{a: soon}", nil,
			[]string{`[].spec.a: Invalid value: "soon": spec.a in body must be of type date-time: "soon"`}},
		"a resource that is invalid already": {spec("a: {type: string, maxLength: 1}"), spec("a: {type: string, maxLength: 2}"), "{a: xxx}",
			[]string{"[].spec.a: Too long: may not be more than 1 byte"}, []string{"[].spec.a: Too long: may not be more than 2 bytes"}},
		"a schema that was removed": {spec("a: {type: string}"), "v1: null", "{a: 1}", nil, nil},
		"no schema before": {
			"v1: null", spec("a: {type: string}"), "{a: 1}", nil, []string{`[].spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"`},
		},
		"a schema that is not structural": {anything, "v1: {properties: {spec: {properties: {a: {type: string}}}}}", "{a: 1}", nil,
			[]string{`[].spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"`}},
	} {
		t.Run(name, func(t *testing.T) {
			object := cron(t, "x", c.resource)
			var want []installplan.ResourceVerdict
			if c.new != nil {
				want = []installplan.ResourceVerdict{{CustomResourceDefinition: "crons.example.com", Version: "v1", Namespace: "ops", Name: "x", Old: c.old, New: c.new}}
			}
			kept := object.DeepCopy()
			got := judge(t, definition(t, true, c.before), definition(t, true, c.after), object)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			require.Equal(t, kept, object, "what was read is not changed")
		})
	}
}

// TestEachRequestedVersionIsValidated checks that custom resources are validated against the schema of each requested
// version, and no other.
func TestEachRequestedVersionIsValidated(t *testing.T) {
	before := definition(t, true, "v1: {type: object}", "v2: {type: object}", "v3: {type: object}")
	strict := func(version, field string) string {
		return version + ": {type: object, properties: {spec: {type: object, required: [" + field + "], properties: {" + field + ": {type: string}}}}}"
	}
	after := definition(t, true, strict("v1", "a"), strict("v2", "b"), strict("v3", "c"))
	verdicts, err := crvalidation.Judge(t.Context(), reader{objects: []olmcore.Object{cron(t, "x", "{}")}},
		[]installplan.SchemaChange{{Before: before, After: after, Versions: []string{"v1", "v2"}}})
	require.NoError(t, err)
	var got []string
	for _, v := range verdicts {
		got = append(got, v.Version+" "+v.New[0])
	}
	require.Equal(t, []string{"v1 [].spec.a: Required value", "v2 [].spec.b: Required value"}, got)
}

// TestUnvalidatedCustomResourcesAreCounted checks that custom resources beyond the limits are reported.
func TestUnvalidatedCustomResourcesAreCounted(t *testing.T) {
	before, after := definition(t, true, "v1: {type: object}"), definition(t, true, spec("a: {type: string}, b: {type: string}, c: {type: string}", "required: [a, b, c]"))
	objects := []olmcore.Object{cron(t, "z", "{}"), cron(t, "y", "{}"), cron(t, "x", "{}"), nil}
	got, err := crvalidation.JudgeWithin(t.Context(), reader{objects: objects},
		[]installplan.SchemaChange{{Before: before, After: after, Versions: []string{"v1"}}}, 2, 1)
	require.NoError(t, err)
	verdict := installplan.ResourceVerdict{CustomResourceDefinition: "crons.example.com", Version: "v1"}
	unread, x, y := verdict, verdict, verdict
	unread.Unread = 1
	x.Namespace, x.Name, x.New = "ops", "x", []string{"[].spec.a: Required value", "and 2 more"}
	y.Namespace, y.Name, y.New = "ops", "y", x.New
	require.Equal(t, []installplan.ResourceVerdict{unread, x, y}, got)

	_, err = crvalidation.Judge(t.Context(), reader{}, []installplan.SchemaChange{{}})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestWorkOfAValidationIsLimited checks that a tenant, who writes both the schema and the custom resources, cannot
// cause unlimited work. Custom resources that are not validated are counted.
func TestWorkOfAValidationIsLimited(t *testing.T) {
	many := make([]string, 20_000)
	for i := range many {
		many[i] = fmt.Sprintf("{n: %d}", i)
	}
	list := "{l: [" + strings.Join(many, ",") + "]}"
	const entries = "l: {type: array, %s items: {type: object, properties: {n: {type: integer}}}}"
	for name, c := range map[string]struct {
		after, of string
		resources int
		some      bool
	}{
		"expensive rules": {spec("l: {type: array, maxItems: 3000, items: {type: integer}}",
			"x-kubernetes-validations: [{rule: 'self.l.all(x, self.l.all(y, x + y >= 0))'}]"), "{l: [" + strings.Repeat("1,", 999) + "1]}", 200, true},
		"a set of objects":          {spec(fmt.Sprintf(entries, "x-kubernetes-list-type: set,")), list, 3, false},
		"unique items":              {spec(fmt.Sprintf(entries, "uniqueItems: true,")), list, 3, false},
		"lists without constraints": {spec(fmt.Sprintf(entries, "maxItems: 100000,")), list, 0, false},
		"a map of few lists": {
			spec("m: {type: object, additionalProperties: {type: array, x-kubernetes-list-type: set, items: {type: object, properties: {n: {type: integer}}}}}"), "{m: {a: " + list[4:] + "}", 3, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []olmcore.Object
			for i := range max(c.resources, 3) {
				objects = append(objects, cron(t, fmt.Sprintf("c%03d", i), c.of))
			}
			start := time.Now()
			got := judge(t, definition(t, true, spec("l: {type: array, items: {x-kubernetes-preserve-unknown-fields: true}}, m: {x-kubernetes-preserve-unknown-fields: true}")),
				definition(t, true, c.after), objects...)
			unread := 0
			for _, v := range got {
				unread += v.Unread
			}
			if c.some {
				require.Positive(t, unread)
				require.Less(t, unread, c.resources)
			} else {
				require.Equal(t, c.resources, unread)
			}
			require.Less(t, time.Since(start), time.Minute)
		})
	}
}

// TestReadErrorsAreReported checks that a failed read is reported. A definition that is not served yet has no custom
// resources to read.
func TestReadErrorsAreReported(t *testing.T) {
	after := definition(t, true, spec("a: {type: string}"))
	change := func(established bool) []installplan.SchemaChange {
		return []installplan.SchemaChange{{Before: definition(t, established, "v1: {type: object}"), After: after, Versions: []string{"v1"}}}
	}
	broken := reader{fail: errors.New("conversion webhook does not answer")}
	got, err := crvalidation.Judge(t.Context(), broken, change(true))
	require.NoError(t, err)
	require.Equal(t, []installplan.ResourceVerdict{{CustomResourceDefinition: "crons.example.com", Version: "v1",
		ReadError: "error listing crons.example.com of version v1: conversion webhook does not answer"}}, got)
	got, err = crvalidation.Judge(t.Context(), broken, change(false))
	require.NoError(t, err)
	require.Empty(t, got)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = crvalidation.Judge(ctx, broken, change(true))
	require.ErrorIs(t, err, context.Canceled)
	_, err = crvalidation.Judge(ctx, reader{objects: []olmcore.Object{cron(t, "x", "{}")}}, change(true))
	require.ErrorIs(t, err, context.Canceled)
}

// BenchmarkJudge validates a thousand custom resources against a schema with a rule.
func BenchmarkJudge(b *testing.B) {
	before := definition(b, true, "v1: {type: object}")
	after := definition(b, true, spec("min: {type: integer, default: 1}, max: {type: integer}", `x-kubernetes-validations: [{rule: "self.min <= self.max"}]`))
	var objects []olmcore.Object
	for i := range 1000 {
		objects = append(objects, cron(b, fmt.Sprintf("x%d", i), "{max: 2}"))
	}
	changes := []installplan.SchemaChange{{Before: before, After: after, Versions: []string{"v1"}}}
	b.ReportAllocs()
	for b.Loop() {
		if verdicts, err := crvalidation.Judge(b.Context(), reader{objects: objects}, changes); err != nil || len(verdicts) > 0 {
			b.Fatal(verdicts, err)
		}
	}
}

// FuzzJudge checks that no schema and no custom resource causes a panic, and that custom resources are not changed.
func FuzzJudge(f *testing.F) {
	f.Add(`{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{"a":{"type":"string","default":"x"}}}}}`, `{"a":null}`)
	f.Add(`{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.a > 1"}],"properties":{"a":{"type":"integer"}}}}}`, `{"a":2}`)
	f.Add(`{"properties":{"spec":{"items":{"pattern":"("},"x-kubernetes-embedded-resource":true}}}`, `[1,{"metadata":[]}]`)
	f.Add(`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{}}`, `"x"`)
	f.Fuzz(func(t *testing.T, text, body string) {
		var props apiextensionsv1.JSONSchemaProps
		var value any
		if yaml.Unmarshal([]byte(text), &props) != nil || utiljson.Unmarshal([]byte(body), &value) != nil {
			return
		}
		object := cron(t, "x", "{}")
		object.Object["spec"] = value
		kept, err := yaml.Marshal(object.Object)
		if err != nil {
			return
		}
		before, after := definition(t, true, "v1: {type: object}"), definition(t, true, "v1: {type: object}")
		after.Spec.Versions[0].Schema.OpenAPIV3Schema = &props
		first := judge(t, before, after, object)
		again := judge(t, before, after, object)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
		if now, _ := yaml.Marshal(object.Object); string(now) != string(kept) {
			t.Fatalf("changed from %s to %s", kept, now)
		}
	})
}

// ExampleJudge validates a custom resource against a new version of its definition, which allows fewer replicas.
func ExampleJudge() {
	version := func(maximum float64) *apiextensionsv1.CustomResourceDefinition {
		replicas := apiextensionsv1.JSONSchemaProps{Type: "integer", Maximum: &maximum}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name, crd.Spec.Group, crd.Spec.Names.Kind = "crons.example.com", "example.com", "Cron"
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": replicas}},
				},
			}}}}
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		return crd
	}
	resource := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Cron", "metadata": map[string]any{"namespace": "ops", "name": "mine"},
		"spec": map[string]any{"replicas": int64(10)},
	}}
	reader, err := olmcore.NewSnapshot([]olmcore.Object{resource}, olmcore.Everything)
	if err != nil {
		fmt.Println(err)
		return
	}
	change := installplan.SchemaChange{Before: version(10), After: version(9), Versions: []string{"v1"}}
	verdicts, err := crvalidation.Judge(context.Background(), reader, []installplan.SchemaChange{change})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range verdicts {
		fmt.Println(v.Version, v.Namespace+"/"+v.Name, v.New)
	}
	// Output:
	// v1 ops/mine [[].spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9]
}
