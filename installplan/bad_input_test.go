// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

// TestBreachesOfContract name the field.
//
// OLM's case: a plan without namespace is a breach of contract.
func TestBreachesOfContract(t *testing.T) {
	change := func(f func(*installplan.Input)) installplan.Input {
		return input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, started(time.Second)), f)
	}
	for field, in := range map[string]installplan.Input{
		"Now":                            change(func(in *installplan.Input) { in.Now = time.Time{} }),
		"InstallPlan":                    change(func(in *installplan.Input) { in.InstallPlan = nil }),
		"InstallPlan.metadata.name":      change(func(in *installplan.Input) { in.InstallPlan.Name = "" }),
		"InstallPlan.metadata.namespace": change(func(in *installplan.Input) { in.InstallPlan.Namespace = "" }),
		"Subscriptions[0].metadata.namespace": change(func(in *installplan.Input) {
			in.Subscriptions = olmcore.Found[*v1alpha1.Subscription](subscription("a", func(s *v1alpha1.Subscription) { s.Namespace = "there" }))
		}),
		"Namespace[0].metadata.name": change(func(in *installplan.Input) {
			in.Namespace = olmcore.Found(&corev1.Namespace{ObjectMeta: clusterMeta("there")})
		}),
		"OperatorGroups[0].metadata.namespace": change(func(in *installplan.Input) { in.OperatorGroups.Items[0].Namespace = "there" }),
		"ClusterServiceVersions[0].metadata.namespace": change(func(in *installplan.Input) {
			in.ClusterServiceVersions = olmcore.Found[*v1alpha1.ClusterServiceVersion](csv("a", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
		}),
		"ClusterServiceVersions[1]":    change(with(csv("a.v1"), csv("a.v1"))),
		"CustomResourceDefinitions[1]": change(with(crdObject("v1"), crdObject("v1"))),
		"Objects[1]":                   change(with(&rbacv1.Role{ObjectMeta: meta("r")}, &rbacv1.Role{ObjectMeta: meta("r")})),
		"Subscriptions[1]":             change(with(subscription("a"), subscription("a", func(s *v1alpha1.Subscription) { s.UID = "other" }))),
		"Config.InstallTimeout":        change(func(in *installplan.Input) { in.Config.InstallTimeout = -1 }),
		"Subscriptions[0]":             change(func(in *installplan.Input) { in.Subscriptions = olmcore.Found[*v1alpha1.Subscription](nil) }),
		"Objects[0]":                   change(func(in *installplan.Input) { in.Objects = olmcore.Found[olmcore.Object]((*rbacv1.Role)(nil)) }),
		"Subscriptions":                change(func(in *installplan.Input) { in.Subscriptions.Complete = false }),
		"OperatorGroups":               change(func(in *installplan.Input) { in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} }),
		"Objects":                      change(func(in *installplan.Input) { in.Objects.Complete = false }),
	} {
		t.Run(field, func(t *testing.T) {
			_, err := reconcileResult(in)
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
			var breach *olmcore.InputError
			require.ErrorAs(t, err, &breach)
			require.Equal(t, field, breach.Field)
			assessment, assessErr := installplan.Assess(in)
			require.Equal(t, err, assessErr)
			require.Zero(t, assessment)
		})
	}
	good := createInput([]*v1alpha1.Subscription{subscription("a")}, operator("a"))
	for field, f := range map[string]func(*create.Input){
		"Now":                                 func(in *create.Input) { in.Now = time.Time{} },
		"Namespace":                           func(in *create.Input) { in.Namespace = "" },
		"Subscriptions[0].metadata.namespace": func(in *create.Input) { in.Namespace = "there" },
		"InstallPlans[0].metadata.namespace": func(in *create.Input) {
			in.InstallPlans = olmcore.Found(plan(none, nil, func(p *v1alpha1.InstallPlan) { p.Namespace = "there" }))
		},
		"Resolution.Operators[0].Name": func(in *create.Input) { in.Resolution.Operators = []olmcore.Operator{{}} },
		"Resolution.Generated[0]":      func(in *create.Input) { in.Resolution.Generated = []*v1alpha1.Subscription{nil} },
		"Config.MaxStatusBytes":        func(in *create.Input) { in.Config.MaxStatusBytes = -1 },
	} {
		in := good
		f(&in)
		_, err := create.Plan(completed(in))
		var breach *olmcore.InputError
		require.ErrorAs(t, err, &breach)
		require.Equal(t, field, breach.Field)
	}
}

// TestOddObjectsAreSurvived: what a cluster may hold is no breach of contract.
func TestOddObjectsAreSurvived(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, in := range map[string]installplan.Input{
		"a Subscription without spec":   input(plan(installing, nil), with(subscription("a", refersTo("install-x"), func(s *v1alpha1.Subscription) { s.Spec = nil }))),
		"a huge manifest":               input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"`+long+`"}}`)}, started(time.Second))),
		"a huge name":                   input(plan(installing, []*v1alpha1.Step{step(long, "", "v1", "ConfigMap", long, `{"metadata":{"name":"`+long+`"}}`)}, started(time.Second))),
		"invalid UTF-8":                 input(plan(installing, []*v1alpha1.Step{step("\xff", "", "v1", "ConfigMap", "\xff", "{\"metadata\":{\"name\":\"\xff\"}}")}, started(time.Second))),
		"a start in the future":         input(plan(installing, []*v1alpha1.Step{roleStep("gone.v1", "r")}, started(-time.Hour))),
		"a start long ago":              input(plan(installing, []*v1alpha1.Step{roleStep("gone.v1", "r")}, started(1e6*time.Hour))),
		"a definition without anything": input(plan(installing, []*v1alpha1.Step{crdStep("", "v1")}, started(time.Second)), with(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: clusterMeta("things.example.com")})),
		"a pull Secret and one of the bundle of one name": input(plan(installing, []*v1alpha1.Step{
			step("", "", "v1", "BundleSecret", "x", `{"metadata":{"name":"x"}}`), step("", "", "v1", "Secret", "x", ""),
			step("", "", "v1", "Secret", "y", ""), step("", "", "v1", "BundleSecret", "y", `{"metadata":{"name":"y"}}`)}, started(time.Second))),
		"a plan of nothing but nil": input(plan(installing, []*v1alpha1.Step{nil, nil}, started(time.Second))),
		"a group without status": input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}), func(in *installplan.Input) {
			in.OperatorGroups = olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Name: "group"}})
			in.OperatorGroups.Items[0].Namespace = ns
		}),
	} {
		t.Run(name, func(t *testing.T) {
			r := reconcile(t, in)
			for _, a := range r.Actions {
				_, err := olmcore.RecordOf(a)
				require.NoError(t, err)
			}
			_, _ = installplan.Assess(in)
		})
	}
}

// TestManifestsThatAreNone: each is refused, and nothing is written.
func TestManifestsThatAreNone(t *testing.T) {
	for name, manifest := range map[string]string{
		"empty": "", "a list": "[]", "a number": "1", "null": "null", "broken": "{", "only a separator": "---\n---", "a string": "metadata",
		"metadata that is none": `{"metadata":1}`, "rules that are none": `{"metadata":{"name":"r"},"rules":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "Role", "r", manifest)}, started(time.Second)))
			r := reconcile(t, in)
			require.Equal(t, []string{status}, describe(r))
			if name != "empty" && name != "null" && name != "only a separator" {
				require.Equal(t, failed, statusOf(in, r).Phase)
				return
			}
			// OLM tries for a minute to read what holds nothing.
			require.Equal(t, installing, statusOf(in, r).Phase)
			require.Equal(t, "retrying execution due to error: error parsing step manifest: r: it is empty", statusOf(in, r).Message)
			in.InstallPlan.Status, in.Now = statusOf(in, r), noon.Add(59*time.Second)
			r = reconcile(t, in)
			require.Equal(t, failed, statusOf(in, r).Phase)
			require.Equal(t, "error parsing step manifest: r: it is empty", statusOf(in, r).Message)
		})
	}
	several := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", "# a\n---\nmetadata: {name: x}\n---\nmetadata: {name: y}\n")}, started(time.Second)))
	r := reconcile(t, several)
	require.Equal(t, []string{status, "create ConfigMap ops/x (StepAbsent)"}, describe(r))
	require.Equal(t, []string{installplan.ReasonExtraDocumentsIgnored}, reasons(r))

	for name, manifest := range map[string]string{
		"JSON, and more":              `{"metadata":{"name":"x"},"data":{"1":"a"}}` + "\n---\n" + `{"metadata":{"name":"y"}}`,
		"YAML that looks like JSON":   `{metadata: {name: x}, data: {1: a}}`,
		"keys that are no strings":    "metadata: {name: x}\ndata:\n  1: a\n",
		"a key that is there twice":   `{"metadata":{"name":"y","name":"x"},"data":{"1":"b","1":"a"}}`,
		"a key that is overwritten":   "metadata: {name: x}\ndata: {\"1\": b, \"1\": a}\n",
		"names that differ in a case": `{"metadata":{"name":"x","Name":"y"},"data":{"1":"a"}}`,
	} {
		in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", manifest)}, started(time.Second)))
		r := reconcile(t, in)
		require.Equal(t, []string{status, "create ConfigMap ops/x (StepAbsent)"}, describe(r), name)
		require.Equal(t, map[string]string{"1": "a"}, r.Actions[1].(olmcore.Create).Object.(*corev1.ConfigMap).Data, name)
	}
	ambiguous := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", "metadata: {name: x}\ndata: {1: a, \"1\": b, true: a, \"true\": b}\n")}, started(time.Second)))
	require.Equal(t, `error parsing step manifest: x: key "1" is there twice`, statusOf(ambiguous, reconcile(t, ambiguous)).Message)

	misnamed := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"y"}}`)}, started(time.Second)))
	r = reconcile(t, misnamed)
	require.Equal(t, []string{status, "create ConfigMap ops/y (StepAbsent)"}, describe(r))
	require.Equal(t, []string{installplan.ReasonStepNameDiffers}, reasons(r))
}

// TestTooManySteps are refused before any of them is read.
func TestTooManySteps(t *testing.T) {
	for steps, phase := range map[int]v1alpha1.InstallPlanPhase{2000: installing, 2001: failed} {
		in := input(plan(installing, slices.Repeat([]*v1alpha1.Step{roleStep("", "r")}, steps), started(time.Second)))
		require.Equal(t, phase, statusOf(in, reconcile(t, in)).Phase)
	}
}

// TestBundleLookupsOfOtherControllers: what they did not unpack is waited for.
func TestBundleLookupsOfOtherControllers(t *testing.T) {
	lookup := func(kind v1alpha1.BundleLookupConditionType) *v1alpha1.InstallPlan {
		return plan(installing, nil, started(time.Minute), func(p *v1alpha1.InstallPlan) {
			p.Status.BundleLookups = []v1alpha1.BundleLookup{{Identifier: "b.v1", Conditions: []v1alpha1.BundleLookupCondition{{Type: kind, Status: "True", Message: "it broke"}}}}
		})
	}
	in := input(lookup(v1alpha1.BundleLookupPending))
	require.Equal(t, "bundle b.v1 is not unpacked", statusOf(in, reconcile(t, in)).Message)
	in = input(lookup(v1alpha1.BundleLookupFailed))
	in.InstallPlan.Status.Message = "retrying execution due to error: it broke"
	require.Equal(t, failed, statusOf(in, reconcile(t, in)).Phase)
	require.Equal(t, "it broke", statusOf(in, reconcile(t, in)).Message)
}
