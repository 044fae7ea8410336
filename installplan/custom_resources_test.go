// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestSchemaChanges are those whose answers Reconcile would look at.
func TestSchemaChanges(t *testing.T) {
	installs := crdObject("v1", "v2")
	newer := csv("a.v2", versioned("2.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
	kept := installed(other(crdObject("v1", "v2"), 0, 1), true)
	kept.Annotations = map[string]string{"operatorframework.io/installed-alongside-" + alongsideHash("there/a.v2"): "there/a.v2"}
	done := applied(t, crdStep("a.v1", "v1", "v2"), csv("a.v1"))
	for name, c := range map[string]struct {
		phase    v1alpha1.InstallPlanPhase
		step     *v1alpha1.Step
		observed []olmcore.Object
		want     []string
	}{
		"a definition that is absent":           {},
		"the schemas are the same":              {observed: []olmcore.Object{installed(crdObject("v1", "v2"), true)}},
		"a definition without versions":         {observed: []olmcore.Object{installed(crdObject(), true)}},
		"one schema differs":                    {observed: []olmcore.Object{installed(other(crdObject("v1", "v2"), 1), true)}, want: []string{"v2"}},
		"both differ":                           {observed: []olmcore.Object{installed(other(crdObject("v2", "v1"), 0, 1), true)}, want: []string{"v1", "v2"}},
		"a version that was not served":         {observed: []olmcore.Object{installed(unserved(other(crdObject("v1", "v2"), 0, 1), 0), true)}, want: []string{"v2"}},
		"a version that is served no more":      {step: step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", unserved(crdObject("v1", "v2"), 1)), observed: []olmcore.Object{installed(other(crdObject("v1", "v2"), 0, 1), true)}, want: []string{"v1"}},
		"a version that is new":                 {observed: []olmcore.Object{installed(other(crdObject("v1"), 0), true)}, want: []string{"v1"}},
		"a plan that waits for approval":        {phase: requiresApproval, observed: []olmcore.Object{installed(other(crdObject("v1", "v2"), 1), true)}, want: []string{"v2"}},
		"a plan that is done":                   {phase: complete, observed: []olmcore.Object{installed(other(crdObject("v1", "v2"), 1), true)}},
		"what was applied is not judged again":  {observed: []olmcore.Object{done}},
		"a definition that a newer one needs":   {observed: []olmcore.Object{kept, newer, csv("a.v1", versioned("1.0.0"))}},
		"a plan without definitions":            {step: roleStep("a.v1", "r"), observed: []olmcore.Object{installed(other(crdObject("v1", "v2"), 1), true)}},
		"a definition that is said to be there": {step: withStatus(present, crdStep("a.v1", "v1", "v2")), observed: []olmcore.Object{installed(other(crdObject("v1", "v2"), 1), true)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.step
			if s == nil {
				s = crdStep("a.v1", "v1", "v2")
			}
			p := plan(installing, []*v1alpha1.Step{s}, started(time.Second))
			if c.phase != none {
				p.Status.Phase = c.phase
				p.Spec.Approved = c.phase != requiresApproval
			}
			in := input(p, with(csv("a.v1")), with(c.observed...))
			if len(c.observed) == 3 {
				in = input(p, with(c.observed...))
			}
			require.NoError(t, invariant.Laws(reconcileResult, in))
			changes, err := schemaChanges(in)
			require.NoError(t, err)
			if c.want == nil {
				require.Empty(t, changes)
				return
			}
			require.Len(t, changes, 1)
			require.Equal(t, c.want, changes[0].Versions)
			require.Equal(t, "things.example.com", changes[0].Before.Name)
			require.Same(t, in.CustomResourceDefinitions.Items[0], changes[0].Before)
			require.Len(t, changes[0].After.Spec.Versions, len(installs.Spec.Versions))
		})
	}
	_, err := schemaChanges(installplan.Input{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestJudgements: what they refuse, what they only say, and what they may not hide.
func TestJudgements(t *testing.T) {
	const prefix = `error validating existing CRs against new CRD's schema for "things.example.com": `
	verdict := func(name string, old, new []string) installplan.ResourceVerdict {
		return installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Namespace: "n", Name: name, Old: old, New: new}
	}
	tight := func(name, text string) string {
		return fmt.Sprintf(`error validating example.com/v1, Kind=Thing "n/%s": updated validation is too restrictive: %s`, name, text)
	}
	bad := []string{"too big"}
	var crowd []installplan.ResourceVerdict
	for i := range 200 {
		crowd = append(crowd, verdict(fmt.Sprintf("a%03d", i), bad, bad))
	}
	for name, c := range map[string]struct {
		verdicts []installplan.ResourceVerdict
		convert  bool
		want     string
		reasons  []string
	}{
		"nothing is wrong":             {verdicts: []installplan.ResourceVerdict{verdict("x", nil, nil)}},
		"one finding":                  {verdicts: []installplan.ResourceVerdict{verdict("x", nil, bad)}, want: tight("x", "too big")},
		"several findings":             {verdicts: []installplan.ResourceVerdict{verdict("x", nil, []string{"a", "b"})}, want: tight("x", "[a, b]")},
		"all resources are named":      {verdicts: []installplan.ResourceVerdict{verdict("y", nil, bad), verdict("x", nil, bad)}, want: tight("x", "too big") + "; " + tight("y", "too big")},
		"invalid before":               {verdicts: []installplan.ResourceVerdict{verdict("x", bad, bad)}, reasons: []string{"ExistingResourceInvalid"}},
		"a webhook converts":           {verdicts: []installplan.ResourceVerdict{verdict("x", nil, bad)}, convert: true, reasons: []string{"ExistingResourceInvalid"}},
		"a webhook does not excuse it": {verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v1", ReadError: "no answer"}}, convert: true, want: "no answer"},
		"they cannot be read":          {verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v1", ReadError: "cannot list"}}, want: "cannot list"},
		"some were not judged":         {verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v1", Unread: 3}}, reasons: []string{"Truncated"}},
		"another definition":           {verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "others.example.com", Version: "v1", Name: "x", New: bad}}},
		"another version":              {verdicts: []installplan.ResourceVerdict{{CustomResourceDefinition: "things.example.com", Version: "v0", Name: "x", New: bad}}},
		"a crowd hides nothing":        {verdicts: append(crowd, verdict("z", nil, bad)), want: tight("z", "too big"), reasons: append(slices.Repeat([]string{"ExistingResourceInvalid"}, 100), "Truncated")},
	} {
		t.Run(name, func(t *testing.T) {
			s := crdStep("a.v1", "v1")
			if c.convert {
				crd := crdObject("v1")
				crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
				s = step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name, crd)
			}
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1"), installed(other(crdObject("v1"), 0), true)))
			in.CustomResources = olmcore.Found(c.verdicts...)
			require.NoError(t, invariant.Laws(reconcileResult, in))
			r := reconcile(t, in)
			got := reasons(r)
			if c.want == "" {
				require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, describe(r))
				same(t, c.reasons, got)
				return
			}
			require.Equal(t, []string{status}, describe(r))
			require.Equal(t, prefix+c.want, strings.TrimPrefix(statusOf(in, r).Message, "retrying execution due to error: "))
			want := append([]string{"StepRefused"}, c.reasons...)
			slices.Sort(want)
			same(t, want, got)
		})
	}
}

// TestFailedPlanLooksAtCustomResourcesAgain, as they are not watched, and goes on once they are in order.
func TestFailedPlanLooksAtCustomResourcesAgain(t *testing.T) {
	sub := subscription("a", refersTo("install-x"))
	in := input(plan(failed, []*v1alpha1.Step{crdStep("a.v1", "v1")}, ownedBy(sub), func(p *v1alpha1.InstallPlan) {
		p.Status.Message = `error validating existing CRs against new CRD's schema for "things.example.com": x`
	}), with(sub, csv("a.v1"), installed(other(crdObject("v1"), 0), true)))
	in.CustomResources = olmcore.Found(installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Name: "x", New: []string{"bad"}})
	require.NoError(t, invariant.Laws(reconcileResult, in))
	r := reconcile(t, in)
	require.Empty(t, r.Actions)
	require.Equal(t, 30*time.Second, r.RequeueAfter)
	in.CustomResources = olmcore.Found[installplan.ResourceVerdict]()
	require.Equal(t, installing, statusOf(in, reconcile(t, in)).Phase)
}

// TestPlanWithAnAccountShowsNoValuesOfResources: findings about custom resources hold values of them, and whoever reads
// the plan may not be allowed to read these.
func TestPlanWithAnAccountShowsNoValuesOfResources(t *testing.T) {
	narrower := thing(field("image", func(s *props) { s.MaxLength = new(int64(1)) }))
	s := step("a.v1", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "things.example.com", narrower)
	bad := func(namespace string) installplan.ResourceVerdict {
		return installplan.ResourceVerdict{CustomResourceDefinition: "things.example.com", Version: "v1", Namespace: namespace, Name: "name-of-one",
			New: []string{`Invalid value: "secret"`}}
	}
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: "scoped"}
	bound, of := scopedTo(account)
	have := installed(thing(), true)
	have.Annotations = recordedFor("ops/a.v1")
	round := func(verdict installplan.ResourceVerdict, bind bool) string {
		in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), have.DeepCopy()))
		if bind {
			bound(in.InstallPlan)
			of(&in)
			in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "scoped"}}
		}
		in.CustomResources = olmcore.Found[installplan.ResourceVerdict](verdict)
		return statusOf(in, reconcile(t, in)).Message
	}
	const prefix = `retrying execution due to error: error validating existing CRs against new CRD's schema for "things.example.com": error validating example.com/v1, Kind=Thing `
	require.Equal(t, prefix+`"of another namespace": updated validation is too restrictive: (not shown)`, round(bad("victim"), true))
	require.Equal(t, prefix+`"of another namespace": updated validation is too restrictive: (not shown)`, round(bad(""), true))
	require.Equal(t, prefix+`"ops/name-of-one": updated validation is too restrictive: Invalid value: "secret"`, round(bad(ns), true))
	require.Equal(t, prefix+`"victim/name-of-one": updated validation is too restrictive: Invalid value: "secret"`, round(bad("victim"), false))

	// Where the definition is another operator's, they are not read.
	have.Annotations = recordedFor("victim/b.v1")
	theirs := csv("b.v1", versioned("1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "victim" }))
	in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(csv("a.v1", versioned("1.0.0")), have, theirs))
	changes, err := schemaChanges(in)
	require.NoError(t, err)
	require.Empty(t, changes)
}
