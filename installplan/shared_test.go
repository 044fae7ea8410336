// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// ownedToo makes an object that of versions of the plan's namespace, as written by a
// plan.
func ownedToo(o olmcore.Object, versions ...string) olmcore.Object {
	for _, v := range versions {
		refs, _ := olmcore.AddOwnerReferences(o.GetOwnerReferences(), []metav1.OwnerReference{olmcore.OwnerReferenceTo(csv(v))})
		o.SetOwnerReferences(refs)
	}
	return marked(o)
}

// marked gives an object the mark of another plan.
func marked(o olmcore.Object) olmcore.Object {
	annotations, _ := olmcore.MergeLabels(o.GetAnnotations(), map[string]string{"olmcore/step-hash": "theirs"})
	o.SetAnnotations(annotations)
	return o
}

// labelled makes a cluster-wide object that of a version.
func labelled(o olmcore.Object, namespace, version string) olmcore.Object {
	labels, _ := olmcore.MergeLabels(o.GetLabels(), (olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: namespace, Name: version, UID: "7"}).Labels())
	o.SetLabels(labels)
	return o
}

// TestASharedObjectIsNotFoughtOver: a plan takes an object over from another plan
// once, and leaves it when that one does the same. What it reads may be behind.
func TestASharedObjectIsNotFoughtOver(t *testing.T) {
	role := func(resolving string) *v1alpha1.Step {
		return step(resolving, "rbac.authorization.k8s.io", "v1", "ClusterRole", "x", `{"metadata":{"name":"x"},"rules":[{"verbs":["get"]}]}`)
	}
	config := func(resolving string) *v1alpha1.Step {
		return step(resolving, "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"1"}}`)
	}
	clusterRole := func() olmcore.Object { return managed(&rbacv1.ClusterRole{ObjectMeta: clusterMeta("x")}) }
	configMap := func() olmcore.Object { return managed(&corev1.ConfigMap{ObjectMeta: meta("x")}) }
	definition := func(version string) olmcore.Object {
		crd := installed(crdObject("v1"), true)
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "theirs"
		crd.Annotations = map[string]string{"operatorframework.io/installed-alongside-" + alongsideHash(version): version}
		return marked(crd)
	}
	reborn := applied(t, role("a.v2"), csv("a.v2", func(c *v1alpha1.ClusterServiceVersion) { c.UID = "before" }))
	unmarked := definition("ops/a.v2")
	unmarked.SetAnnotations(recordedFor("ops/a.v2"))
	for name, c := range map[string]struct {
		step *v1alpha1.Step
		have olmcore.Object
		left bool
	}{
		"a ClusterRole, still of an earlier incarnation": {role("a.v2"), reborn, false},
		"a ConfigMap that a user made meanwhile":         {withStatus(notPresent, config("a.v2")), &corev1.ConfigMap{ObjectMeta: meta("x")}, false},
		"a definition that a user made meanwhile":        {withStatus(notPresent, crdStep("a.v2", "v1")), unmarked, false},
		"a ClusterRole, now of another namespace":        {role("a.v2"), labelled(clusterRole(), "elsewhere", "a.v2"), true},
		"a ClusterRole, now of another package":          {role("a.v2"), labelled(clusterRole(), ns, "b.v1"), true},
		"a ClusterRole, still of the predecessor":        {role("a.v2"), marked(labelled(clusterRole(), ns, "a.v1")), false},
		"a ClusterRole, still of a renamed predecessor":  {role("a.v2"), marked(labelled(clusterRole(), ns, "old.v1")), false},
		"a ClusterRole without owner":                    {role(""), marked(clusterRole()), true},
		"a ConfigMap of both":                            {config("a.v2"), ownedToo(configMap(), "a.v2", "b.v1"), true},
		"a ConfigMap, not of this one yet":               {config("a.v2"), ownedToo(configMap(), "b.v1"), false},
		"a ConfigMap of a user":                          {config("a.v2"), marked(&corev1.ConfigMap{ObjectMeta: meta("x")}), true},
		"a ConfigMap without owner":                      {config(""), marked(configMap()), true},
		"a definition of both":                           {crdStep("a.v2", "v1"), definition("ops/a.v2"), true},
		"a definition, not of this one yet":              {crdStep("a.v2", "v1"), definition("ops/b.v1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			own := csv("a.v2", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" })
			in := input(plan(installing, []*v1alpha1.Step{c.step}, started(time.Second)), with(own, csv("b.v1"), c.have))
			in.Config.OverwriteUnmanaged = true // what is a user's, too
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(c.have): {Count: 1}}
			r := reconcile(t, in)
			if !c.left {
				require.IsType(t, olmcore.Update{}, r.Actions[len(r.Actions)-1])
				require.NotContains(t, reasons(r), installplan.ReasonSharedObject)
				return
			}
			require.Equal(t, complete, statusOf(in, r).Phase)
			require.Equal(t, []string{installplan.ReasonSharedObject}, reasons(r))
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(c.have): {Class: olmcore.Conflict, Count: 1}}
			r = reconcile(t, in)
			require.IsType(t, olmcore.Update{}, r.Actions[len(r.Actions)-1], "nothing was written yet")
		})
	}
}

// TestWhatBelongsToAnotherOperatorIsNotDeleted, even where the step cannot be
// applied otherwise; what the predecessor had is.
func TestWhatBelongsToAnotherOperatorIsNotDeleted(t *testing.T) {
	binding := func(cluster bool) olmcore.Object {
		ref := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "other"}
		if cluster {
			return managed(&rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta("x"), RoleRef: ref})
		}
		return managed(&rbacv1.RoleBinding{ObjectMeta: meta("x"), RoleRef: ref})
	}
	for name, c := range map[string]struct {
		have    olmcore.Object
		deleted bool
	}{
		"of nobody":                            {binding(false), true},
		"of this version":                      {ownedToo(binding(false), "a.v2"), true},
		"of the predecessor":                   {ownedToo(binding(false), "a.v1"), true},
		"of a renamed predecessor":             {ownedToo(binding(false), "old.v1"), true},
		"of another operator":                  {ownedToo(binding(false), "b.v1"), false},
		"of this version and another operator": {ownedToo(binding(false), "a.v2", "b.v1"), false},
		"cluster-wide, of nobody":              {binding(true), true},
		"cluster-wide, of this version":        {labelled(binding(true), ns, "a.v2"), true},
		"cluster-wide, of the predecessor":     {labelled(binding(true), ns, "a.v1"), true},
		"cluster-wide, of another operator":    {labelled(binding(true), ns, "b.v1"), false},
		"cluster-wide, of another namespace":   {labelled(binding(true), "elsewhere", "a.v2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			kind := olmcore.KeyOf(c.have).Kind
			s := step("a.v2", "rbac.authorization.k8s.io", "v1", kind, "x",
				`{"metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"mine"}}`)
			own := csv("a.v2", func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = "old.v1" })
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(own, c.have))
			r := reconcile(t, in)
			if c.deleted {
				require.Equal(t, []string{"delete"}, verbs(r))
				in.LastRun = olmcore.LastResults{olmcore.KeyOf(c.have): {Count: 1}}
				require.Equal(t, []string{"delete"}, verbs(reconcile(t, in)), "a list that is behind")
				return
			}
			require.Equal(t, []string{"updateStatus"}, verbs(r))
			require.Equal(t, "retrying execution due to error: "+kind+" x exists and its roleRef is immutable", statusOf(in, r).Message)
		})
	}
}

func verbs(r olmcore.Result) []string {
	var out []string
	for _, a := range r.Actions {
		verb, _, _ := a.Describe()
		out = append(out, string(verb))
	}
	return out
}
