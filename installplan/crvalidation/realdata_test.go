// SPDX-License-Identifier: Apache-2.0

package crvalidation_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// published returns the definitions of a bundle, and its example resources.
func published(t *testing.T, b realdata.Bundle) (definitions map[string]*apiextensionsv1.CustomResourceDefinition, examples []olmcore.Object) {
	definitions = map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, o := range b.Objects {
		switch o := o.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			definitions[o.Spec.Group+"/"+o.Spec.Names.Kind] = o
		case *v1alpha1.ClusterServiceVersion:
			var list []json.RawMessage
			if text := o.Annotations["alm-examples"]; text != "" {
				require.NoError(t, json.Unmarshal([]byte(text), &list))
			}
			for _, data := range list {
				example, err := decode.Decode(data)
				require.NoError(t, err)
				examples = append(examples, example)
			}
		}
	}
	return definitions, examples
}

// TestPublishedUpgradesAreNotRefused checks that no published upgrade is refused because of the example resources of
// the version before. Many of these are incomplete in both versions.
func TestPublishedUpgradesAreNotRefused(t *testing.T) {
	if os.Getenv("OLMCORE_DATA") == "" {
		t.Setenv("OLMCORE_DATA", filepath.Join("..", "..", "..", "shared", "data"))
	}
	bundles := realdata.Bundles(t)
	judged, already := 0, 0
	for i := 1; i < len(bundles); i++ {
		if bundles[i].Operator != bundles[i-1].Operator {
			continue
		}
		old, examples := published(t, bundles[i-1])
		next, _ := published(t, bundles[i])
		for _, o := range examples {
			gvk := olmcore.GVKOf(o)
			before, after := old[gvk.Group+"/"+gvk.Kind], next[gvk.Group+"/"+gvk.Kind]
			if before == nil || after == nil {
				continue
			}
			before = before.DeepCopy()
			before.Status = definition(t, true).Status
			reader, err := olmcore.NewSnapshot([]olmcore.Object{o}, olmcore.Everything)
			require.NoError(t, err)
			verdicts, err := crvalidation.Judge(t.Context(), reader,
				[]installplan.SchemaChange{{Before: before, After: after, Versions: []string{gvk.Version}}})
			require.NoError(t, err)
			judged++
			for _, v := range verdicts {
				require.Empty(t, v.ReadError)
				require.NotEmpty(t, v.Old, "%s %s: %s %s: %q", bundles[i].Operator, bundles[i].Version, gvk, v.Name, v.New)
				already++
			}
		}
	}
	t.Logf("%d examples, %d of them invalid in both versions", judged, already)
	require.Positive(t, judged)
	require.Positive(t, already)
}

// messageOf returns the message of a plan about the step that changes a definition while a custom resource exists.
func messageOf(t *testing.T, before, after *apiextensionsv1.CustomResourceDefinition, resource olmcore.Object) string {
	t.Helper()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	after.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	manifest, err := yaml.Marshal(after)
	require.NoError(t, err)
	p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "p", UID: "p", Finalizers: []string{installplan.Finalizer}}}
	p.Spec = v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{}}
	p.Status = v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseInstalling, StartTime: &metav1.Time{Time: now}, CatalogSources: []string{},
		Plan: []*v1alpha1.Step{{Status: v1alpha1.StepStatusUnknown, Resource: v1alpha1.StepResource{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: after.Name, Manifest: string(manifest)}}}}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group", UID: "g"}}
	group.Status.Namespaces = []string{"ops"}
	world, err := olmcore.NewSnapshot([]olmcore.Object{p, group, before}, olmcore.Everything)
	require.NoError(t, err)
	in, err := installplan.Gather(t.Context(), world, types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, installplan.Config{})
	require.NoError(t, err)
	in.Now = now
	r, err := installplan.Reconcile(in)
	require.NoError(t, err)
	judged, err := crvalidation.Judge(t.Context(), reader{objects: []olmcore.Object{resource}}, r.SchemaChanges)
	require.NoError(t, err)
	in.CustomResources = olmcore.Found(judged...)
	r, err = installplan.Reconcile(in)
	require.NoError(t, err)
	written := len(r.Actions) == 2
	if !written && len(r.Actions) == 1 {
		_, written = r.Actions[0].(olmcore.Update)
	}
	next, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](r.Actions)
	if !ok || next.Status.Message == "" {
		require.True(t, written, "neither written nor refused")
		return ""
	}
	require.False(t, written, "written and refused")
	return next.Status.Message
}

// TestDefinitionChangesThatOLMRefuses checks which changes of a definition the tests of OLM refuse, and the messages,
// with a custom resource that has 10 replicas.
//
// OLM's cases: v1beta1: a schema that stays the same judges no resource; v1beta1: required fields that a resource lacks
// are all named; v1beta1: a minimum that is raised; v1beta1: a version that is served no more does not judge; v1beta1:
// nor does one that is switched off with the update; v1beta1: whole numbers are compared with fractions; a resource
// that stays valid; a maximum violated in v2, with version, kind and name; not judged: a version that is served no
// more; not judged: a version that was not served before; the only version lowers its maximum.
func TestDefinitionChangesThatOLMRefuses(t *testing.T) {
	const (
		refused = `retrying execution due to error: error validating existing CRs against new CRD's schema for "crons.example.com": error validating example.com/`
		ofCron  = `, Kind=Cron "ops/mine": updated validation is too restrictive: `
		lower   = "[].spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9"
	)
	version := func(name, replicas string) string {
		return name + ": {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer" + replicas + "}}}}}"
	}
	any1, any2, at9 := version("v1", ""), version("v2", ""), ", maximum: 9"
	type versions = []string
	for name, c := range map[string]struct {
		before, after      versions
		unserved, unserves int // the number of a version, from 1, before and after
		spec               string
		want               string
	}{
		"unchanged": {before: versions{any1}, after: versions{any1}},
		"fields that are required": {before: versions{any1}, spec: "{}",
			after: versions{spec("a: {type: string}, b: {type: string}, c: {type: string}", "required: [a, b, c]")},
			want:  refused + "v1" + ofCron + "[[].spec.a: Required value, [].spec.b: Required value, [].spec.c: Required value]"},
		"a minimum that is raised": {before: versions{version("v1", ", minimum: 1")}, after: versions{version("v1", ", minimum: 3")}, spec: "{replicas: 2}",
			want: refused + "v1" + ofCron + "[].spec.replicas: Invalid value: 2: spec.replicas in body should be greater than or equal to 3"},
		"a maximum that is lowered": {
			before: versions{version("v1", ", maximum: 10")}, after: versions{version("v1", at9)}, want: refused + "v1" + ofCron + lower,
		},
		"a maximum that fits": {
			before: versions{any1, any2}, after: versions{version("v1", ", maximum: 10"), version("v2", ", maximum: 10")},
		},
		"a whole number against a fraction": {
			before: versions{any1}, after: versions{"v1: {type: object, properties: {spec: {type: object, properties: {replicas: {type: number, minimum: 9.5, maximum: 10.0}}}}}"},
		},
		"a maximum that is violated in v2": {
			before: versions{any1, any2}, after: versions{any1, version("v2", at9)}, want: refused + "v2" + ofCron + lower,
		},
		"violated in a version that is no longer served": {
			before: versions{any1, any2}, after: versions{any1, version("v2", at9)}, unserves: 2,
		},
		"violated in a version that was never served": {
			before: versions{any1, any2}, after: versions{any1, version("v2", at9)}, unserved: 2,
		},
		"violated in a version that is new": {before: versions{any1}, after: versions{any1, version("v2", at9)}},
		"violated in the old version, which is no longer served": {
			before: versions{any1}, after: versions{version("v1", at9), any2}, unserves: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := definition(t, true, c.before...), definition(t, false, c.after...)
			if c.unserved > 0 {
				before.Spec.Versions[c.unserved-1].Served = false
			}
			if c.unserves > 0 {
				after.Spec.Versions[c.unserves-1].Served = false
			}
			if c.spec == "" {
				c.spec = "{replicas: 10}"
			}
			// The cluster has another annotation, so that there is something to write.
			before.Annotations = map[string]string{"theirs": "kept"}
			before.Labels = map[string]string{"olm.managed": "true"}
			require.Equal(t, c.want, messageOf(t, before, after, cron(t, "mine", c.spec)))
		})
	}
}
