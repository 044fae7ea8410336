// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// around are the objects around the Pods of an input, and what would damage each.
func around(in *catalog.Input) map[olmcore.Object]func() {
	objects := map[olmcore.Object]func(){}
	for _, o := range in.Services.Items {
		objects[o] = func() { o.Spec.Selector = nil }
	}
	for _, o := range in.ServiceAccounts.Items {
		objects[o] = func() { o.Labels = map[string]string{"olm.managed": "false"} }
	}
	for _, o := range in.NetworkPolicies.Items {
		objects[o] = func() { o.Spec = networkingv1.NetworkPolicySpec{} }
	}
	for _, o := range in.PodDisruptionBudgets.Items {
		objects[o] = func() { o.Spec = policyv1.PodDisruptionBudgetSpec{} }
	}
	for _, o := range in.Roles.Items {
		objects[o] = func() { o.Rules = nil }
	}
	for _, o := range in.RoleBindings.Items {
		objects[o] = func() { o.Subjects = []rbacv1.Subject{{Kind: "User", Name: "x"}} }
	}
	return objects
}

// TestWhoseAnObjectIs damages each object around the Pods, in every state of its
// ownership: it is repaired, or left alone because it goes, or reported because it is
// somebody else's.
func TestWhoseAnObjectIs(t *testing.T) {
	const repaired, left, reported = "update", "", "conflict"
	owner := func(kind, group, name string) func(olmcore.Object) {
		return func(o olmcore.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: group + "/v1alpha1", Kind: kind, Name: name, UID: "other"}})
		}
	}
	managed := func(value string) func(olmcore.Object) {
		return func(o olmcore.Object) {
			o.SetOwnerReferences(nil)
			o.SetLabels(map[string]string{"olm.managed": value})
		}
	}
	for name, test := range map[string]struct {
		change func(olmcore.Object)
		want   string
	}{
		"the catalog's":                     {func(olmcore.Object) {}, repaired},
		"the catalog's, and going":          {func(o olmcore.Object) { o.SetDeletionTimestamp(new(metav1.NewTime(start))) }, left},
		"a predecessor's":                   {owner("CatalogSource", "operators.coreos.com", "cool"), repaired},
		"another catalog's":                 {owner("CatalogSource", "operators.coreos.com", "other"), reported},
		"that of a catalog of other making": {owner("CatalogSource", "example.com", "cool"), reported},
		"that of a thing of that name":      {owner("Subscription", "operators.coreos.com", "cool"), reported},
		"nobody's, but managed":             {managed("true"), repaired},
		"nobody's":                          {managed("false"), reported},
		"the catalog's and another's": {func(o olmcore.Object) {
			o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "x", UID: "x"}))
		}, repaired},
	} {
		for _, base := range []catalog.Input{converged(t, catalog.Config{Replicas: 2}, cool()), mappedInput(t, catalog.Config{})} {
			for i := range len(around(&base)) {
				in := invariant.Clone(base)
				objects := around(&in)
				keys := make([]olmcore.Object, 0, len(objects))
				for o := range objects {
					keys = append(keys, o)
				}
				slices.SortFunc(keys, func(a, b olmcore.Object) int {
					return strings.Compare(olmcore.KeyOf(a).String(), olmcore.KeyOf(b).String())
				})
				o := keys[i]
				objects[o]()
				test.change(o)
				key, want := olmcore.KeyOf(o), test.want
				if _, account := o.(*corev1.ServiceAccount); account && (want == reported || len(o.GetOwnerReferences()) == 0) {
					want = left // it is used as it is
				}
				out, err := catalog.Reconcile(in)
				require.NoError(t, err)
				require.NoError(t, invariant.Laws(result, in))
				checkPromises(t, in, out)
				got := ""
				for _, a := range out.Actions {
					if verb, target, _ := a.Describe(); target.Key() == key {
						got += string(verb)
					}
				}
				for _, d := range out.Diagnostics {
					if d.Reason == catalog.ReasonNameConflict {
						require.Contains(t, d.Message, o.GetName()+" is unmanaged or owned by another")
						got += reported
					}
				}
				require.Equal(t, want, got, "%s: %s", name, key)
			}
		}
	}
}

// TestWhatIsNotTheCatalogsIsNotSeen: nothing, objects of other namespaces and those of
// other names change nothing, wherever they stand.
func TestWhatIsNotTheCatalogsIsNotSeen(t *testing.T) {
	for _, base := range []catalog.Input{converged(t, catalog.Config{Replicas: 2}, cool()), mappedInput(t, catalog.Config{})} {
		for name, move := range map[string]func(olmcore.Object){
			"another namespace": func(o olmcore.Object) { o.SetNamespace("other") },
			"another name":      func(o olmcore.Object) { o.SetName("x" + o.GetName()) },
			"a longer name":     func(o olmcore.Object) { o.SetName(o.GetName() + "x") },
			"a shorter name":    func(o olmcore.Object) { o.SetName("c" + o.GetName()[len("cool"):]) },
		} {
			in := invariant.Clone(base)
			other := invariant.Clone(base)
			for o, damage := range around(&other) {
				damage()
				move(o)
				o.SetUID("other")
				o.SetOwnerReferences(nil)
			}
			in.Services.Items = append(other.Services.Items, in.Services.Items...)
			in.ServiceAccounts.Items = append(other.ServiceAccounts.Items, in.ServiceAccounts.Items...)
			in.NetworkPolicies.Items = append(other.NetworkPolicies.Items, in.NetworkPolicies.Items...)
			in.PodDisruptionBudgets.Items = append(other.PodDisruptionBudgets.Items, in.PodDisruptionBudgets.Items...)
			in.Roles.Items = append(other.Roles.Items, in.Roles.Items...)
			in.RoleBindings.Items = append(other.RoleBindings.Items, in.RoleBindings.Items...)
			out, err := catalog.Reconcile(in)
			require.NoError(t, err)
			require.Empty(t, out.Result, name)
		}
	}
}

// TestAConfigMapOfAnotherNameOrNamespace is not the one that is asked for.
func TestAConfigMapOfAnotherNameOrNamespace(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	for name, change := range map[string]func(*catalog.Input){
		"none":              func(in *catalog.Input) { in.ConfigMap = nil },
		"another name":      func(in *catalog.Input) { in.ConfigMap.Name = "x" },
		"another namespace": func(in *catalog.Input) { in.ConfigMap.Namespace = "x" },
	} {
		in := invariant.Clone(base)
		change(&in)
		require.Equal(t, catalog.ReasonConfigMapMissing, catalog.Assess(in).WaitingFor, name)
		require.Equal(t, 1, catalog.Assess(in).Ready, "what serves goes on serving")
	}
}

// TestTheReferenceToTheConfigMap is written when the ConfigMap is another one, or
// another version of it.
func TestTheReferenceToTheConfigMap(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	for name, change := range map[string]func(*v1alpha1.ConfigMapResourceReference){
		"nothing":   nil,
		"name":      func(r *v1alpha1.ConfigMapResourceReference) { r.Name = "x" },
		"namespace": func(r *v1alpha1.ConfigMapResourceReference) { r.Namespace = "x" },
		"UID":       func(r *v1alpha1.ConfigMapResourceReference) { r.UID = "x" },
		"version":   func(r *v1alpha1.ConfigMapResourceReference) { r.ResourceVersion = "x" },
	} {
		in := invariant.Clone(base)
		if change != nil {
			change(in.CatalogSource.Status.ConfigMapResource)
		}
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		status, written := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, change != nil, written, name)
		if written {
			want := &v1alpha1.ConfigMapResourceReference{Name: "content", Namespace: "olm", UID: in.ConfigMap.UID, ResourceVersion: in.ConfigMap.ResourceVersion}
			want.LastUpdateTime = metav1.NewTime(in.Now)
			require.Equal(t, want, status.Status.ConfigMapResource, name)
		}
	}
}

// TestAPodThatOLMMadeOfAConfigMap says which version and which ConfigMap it serves, and
// nothing else is known about its content.
func TestAPodThatOLMMadeOfAConfigMap(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		current bool
	}{
		"as it is":          {func(*corev1.Pod) {}, true},
		"another version":   {func(p *corev1.Pod) { p.Labels["olm.configMapResourceVersion"] = "x" }, false},
		"another ConfigMap": {func(p *corev1.Pod) { p.Spec.Containers[0].Command[2] = "x" }, false},
		"no command":        {func(p *corev1.Pod) { p.Spec.Containers[0].Command = nil }, false},
		"half a command":    {func(p *corev1.Pod) { p.Spec.Containers[0].Command = p.Spec.Containers[0].Command[:2] }, false},
		"no container":      {func(p *corev1.Pod) { p.Spec.Containers = nil }, false},
		"two containers":    {func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) }, false},
	} {
		in := invariant.Clone(base)
		delete(in.Pods.Items[0].Annotations, "olmcore/config-map-hash")
		test.change(in.Pods.Items[0])
		require.Equal(t, !test.current, catalog.Assess(in).Pods[0].Class == catalog.ClassOutdated, name)
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		checkPromises(t, in, out)
	}
}

// TestAnAddressThatDoesNotAnswer is no catalog that serves.
func TestAnAddressThatDoesNotAnswer(t *testing.T) {
	cs := cool()
	cs.Spec.Image, cs.Spec.Address, cs.UID = "", "registry:50051", "uid"
	for state, test := range map[string]struct {
		last   time.Time
		status metav1.ConditionStatus
		reason string
		state  catalog.State
	}{
		"READY":             {start, metav1.ConditionTrue, catalog.ReasonConnectionReady, catalog.StateServing},
		"IDLE":              {start, metav1.ConditionTrue, catalog.ReasonConnectionReady, catalog.StateServing},
		"IDLE ":             {time.Time{}, metav1.ConditionUnknown, catalog.ReasonConnecting, catalog.StateUnknown},
		"CONNECTING":        {start, metav1.ConditionUnknown, catalog.ReasonConnecting, catalog.StateUnknown},
		"TRANSIENT_FAILURE": {start, metav1.ConditionFalse, catalog.ReasonConnectionFailed, catalog.StateUnavailable},
		"SHUTDOWN":          {start, metav1.ConditionFalse, catalog.ReasonConnectionFailed, catalog.StateUnavailable},
	} {
		in := emptyNamespace(catalog.Input{Now: start.Add(time.Minute), CatalogSource: cs, Connection: &catalog.Connection{
			Address: "registry:50051", State: strings.TrimSpace(state), LastConnect: test.last, LastTransition: start,
		}})
		a := catalog.Assess(in)
		require.Equal(t, test.state, a.State, state)
		require.Equal(t, test.status, a.Conditions[0].Status, state)
		require.Equal(t, test.reason, a.Conditions[0].Reason, state)
		require.Equal(t, test.status == metav1.ConditionTrue, a.Healthy && a.Connected, state)
		failing := a.Conditions[2].Reason == catalog.ReasonConnectionFailed
		require.Equal(t, test.status != metav1.ConditionTrue && state != "IDLE ", failing, state)
		in.Now = in.Now.Add(-time.Second)
		a = catalog.Assess(in)
		require.Equal(t, catalog.ReasonAsExpected, a.Conditions[2].Reason, "%s, within the grace", state)
		require.Equal(t, failing, !a.NextDeadline.IsZero(), state)
	}
}
