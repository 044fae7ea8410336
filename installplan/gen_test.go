// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

func olmReference(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: ns, Name: name}
}

// anyStep is a step of any kind, in any state.
func anyStep(t *rapid.T) *v1alpha1.Step {
	s := stepOfKind(t, rapid.IntRange(0, 15).Draw(t, "kind"))
	if s == nil {
		return nil
	}
	s.Status = rapid.SampledFrom([]v1alpha1.StepStatus{
		unknown, unknown, unknown, notPresent, notPresent, created, present, waitingAPI, v1alpha1.StepStatusNotCreated, "Odd",
	}).Draw(t, "status")
	s.Optional = rapid.IntRange(0, 9).Draw(t, "optional") == 0
	return s
}

// plausibleStep is one that a plan of ours may hold.
func plausibleStep(t *rapid.T) *v1alpha1.Step {
	s := stepOfKind(t, rapid.SampledFrom([]int{0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 14}).Draw(t, "kind"))
	s.Resolving = rapid.SampledFrom([]string{"a.v1", "b.v1"}).Draw(t, "for")
	s.Status = rapid.SampledFrom([]v1alpha1.StepStatus{unknown, unknown, notPresent, notPresent, created, present}).Draw(t, "status")
	return s
}

func stepOfKind(t *rapid.T, kind int) *v1alpha1.Step {
	resolving := rapid.SampledFrom([]string{"a.v1", "b.v1", "gone.v1", ""}).Draw(t, "resolving")
	name := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")
	plain := func(group, kind, rest string) *v1alpha1.Step {
		return step(resolving, group, "v1", kind, name, `{"metadata":{"name":"`+name+`"}`+rest+`}`)
	}
	var s *v1alpha1.Step
	switch kind {
	case 0, 1:
		s = csvStep(rapid.SampledFrom([]string{"a.v1", "b.v1"}).Draw(t, "csv"))
	case 2, 3:
		s = crdStep(resolving, "v1")
	case 4:
		s = plain("rbac.authorization.k8s.io", "RoleBinding", `,"roleRef":{"kind":"Role","name":"new"}`)
	case 5:
		s = plain("rbac.authorization.k8s.io", "ClusterRole", `,"rules":[]`)
	case 6:
		s = plain("", "ServiceAccount", "")
	case 7:
		s = plain("", "Service", `,"spec":{"ports":[{"port":80}]}`)
	case 8:
		s = plain("", "ConfigMap", `,"data":{"a":"1"}`)
	case 9:
		s = plain("", "BundleSecret", `,"type":"Opaque"`)
		s.Resource.Manifest = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"` + name + `"}}`
	case 10:
		s = plain("operators.coreos.com", "Subscription", `,"spec":{"name":"p"}`)
	case 11:
		s = step(resolving, "policy", "v1", "PodDisruptionBudget", name, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"`+name+`"},"spec":{"minAvailable":1}}`)
	case 12:
		s = step(resolving, "", "v1", rapid.SampledFrom([]string{"Gizmo", "Role", "ServiceMonitor", "CustomResourceDefinition"}).Draw(t, "odd"), name,
			rapid.SampledFrom([]string{"", "{", "[]", "null", `{"metadata":{}}`, "kind: Role\nmetadata: {name: x}\n---\nkind: Role"}).Draw(t, "manifest"))
	case 13:
		if maybe(t, "nil") {
			return nil
		}
		s = step("", "", "v1", "Secret", name, "")
	default:
		s = roleStep(resolving, name)
	}
	return s
}

func anyObjects(t *rapid.T, in *installplan.Input) {
	for _, name := range []string{"a.v1", "b.v1"} {
		if maybe(t, "has csv") {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, csv(name, func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = anyMeta(t, name, ns) }))
		}
	}
	if maybe(t, "has crd") {
		crd := installed(crdObject(rapid.SampledFrom([]string{"v0", "v1"}).Draw(t, "version")), maybe(t, "established"))
		crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
		if maybe(t, "other schema") {
			other(crd, 0)
		}
		for _, name := range []string{"x", "y"} {
			if maybe(t, "judged") {
				v := installplan.ResourceVerdict{CustomResourceDefinition: crd.Name, Version: "v1", Namespace: ns, Name: name}
				if maybe(t, "invalid") {
					v.New = []string{"bad"}
				}
				if maybe(t, "invalid already") {
					v.Old = []string{"bad"}
				}
				in.CustomResources.Items = append(in.CustomResources.Items, v)
			}
		}
		in.CustomResourceDefinitions.Items = append(in.CustomResourceDefinitions.Items, crd)
	}
	for _, name := range []string{"x", "y"} {
		for _, o := range []olmcore.Object{
			&rbacv1.Role{}, &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "old"}}, &rbacv1.ClusterRole{}, &corev1.ServiceAccount{},
			&corev1.Service{}, &corev1.ConfigMap{Data: map[string]string{"b": "2"}}, &corev1.Secret{Type: "Other"},
		} {
			if !maybe(t, "has object") {
				continue
			}
			namespace := ns
			if _, ok := o.(*rbacv1.ClusterRole); ok {
				namespace = ""
			}
			m := anyMeta(t, name, namespace)
			o.SetName(name)
			o.SetNamespace(namespace)
			o.SetUID(m.UID)
			o.SetResourceVersion("1")
			o.SetLabels(m.Labels)
			o.SetAnnotations(m.Annotations)
			o.SetFinalizers(m.Finalizers)
			o.SetOwnerReferences(m.OwnerReferences)
			o.SetDeletionTimestamp(m.DeletionTimestamp)
			in.Objects.Items = append(in.Objects.Items, o)
		}
	}
}

// plausibleInput is a plan of ours that is being installed, over any objects.
func plausibleInput(t *rapid.T) installplan.Input {
	var steps []*v1alpha1.Step
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		steps = append(steps, plausibleStep(t))
	}
	in := input(plan(installing, steps, started(time.Duration(rapid.IntRange(0, 50).Draw(t, "since"))*time.Second)))
	anyObjects(t, &in)
	for _, name := range []string{"a.v1", "b.v1"} {
		if versionIn(in, name) == nil && maybe(t, "version") {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, csv(name))
		}
	}
	if maybe(t, "last run") {
		in.LastRun = olmcore.LastResults{}
		for _, o := range in.Objects.Items {
			if maybe(t, "was written") {
				in.LastRun[olmcore.KeyOf(o)] = olmcore.LastResult{Count: 1}
			}
		}
	}
	return in
}

func eitherInput(t *rapid.T) installplan.Input {
	return rapid.SampledFrom([]func(*rapid.T) installplan.Input{anyInput, plausibleInput}).Draw(t, "input")(t)
}

// anyInput is a plan in any phase, with steps of any kind and any state of the cluster around it.
func anyInput(t *rapid.T) installplan.Input {
	var steps []*v1alpha1.Step
	for range rapid.IntRange(0, 6).Draw(t, "steps") {
		steps = append(steps, anyStep(t))
	}
	phase := rapid.SampledFrom([]v1alpha1.InstallPlanPhase{
		none, "Odd", requiresApproval, requiresApproval, installing, installing, installing, installing, complete, failed,
	}).Draw(t, "phase")
	p := plan(phase, steps)
	if maybe(t, "started") {
		p.Status.StartTime = ago(time.Duration(rapid.IntRange(-5, 700).Draw(t, "since")) * time.Second)
	}
	if maybe(t, "approval") {
		p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, maybe(t, "approved")
	}
	if rapid.IntRange(0, 9).Draw(t, "deleted") == 0 {
		p.DeletionTimestamp = ago(time.Duration(rapid.IntRange(0, 90).Draw(t, "deleted since")) * time.Second)
	}
	p.Status.Message = rapid.SampledFrom([]string{"", "waiting for x", "retrying execution due to error: x", "risk of data loss updating x"}).Draw(t, "message")
	if maybe(t, "lookup") {
		p.Status.BundleLookups = []v1alpha1.BundleLookup{{Identifier: "b", Conditions: []v1alpha1.BundleLookupCondition{{
			Type:   rapid.SampledFrom([]v1alpha1.BundleLookupConditionType{v1alpha1.BundleLookupPending, v1alpha1.BundleLookupFailed}).Draw(t, "lookup type"),
			Status: rapid.SampledFrom([]corev1.ConditionStatus{"True", "False"}).Draw(t, "lookup status"),
		}}}}
	}
	in := input(p)
	for _, name := range []string{"a", "b"} {
		if maybe(t, "has subscription") {
			s := anySubscription(t, name)
			in.Subscriptions.Items = append(in.Subscriptions.Items, s)
			if s.Spec != nil && s.UID != "" && maybe(t, "owns") {
				ownedBy(s)(p)
			}
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "no group") == 0 {
		in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
	} else if rapid.IntRange(0, 5).Draw(t, "scoped") == 0 {
		in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup](group(func(g *operatorsv1.OperatorGroup) {
			g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = "scoped", olmReference("scoped")
		}))
		p.Status.AttenuatedServiceAccountRef = olmReference("scoped")
		if maybe(t, "account") {
			in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: meta("scoped")}
		}
	}
	anyObjects(t, &in)
	if maybe(t, "last run") {
		in.LastRun = olmcore.LastResults{}
		for _, key := range []olmcore.Key{
			{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: ns, Name: "x"}, {Kind: "ConfigMap", Namespace: ns, Name: "x"},
			{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition", Name: "things.example.com"},
		} {
			in.LastRun[key] = olmcore.LastResult{Count: 1, Message: "no", Class: rapid.SampledFrom([]olmcore.ErrorClass{
				olmcore.ClassNone, olmcore.Gone, olmcore.NoMatch, olmcore.Conflict, olmcore.Transient, olmcore.Forbidden, olmcore.Invalid, olmcore.Webhook,
			}).Draw(t, "class")}
		}
	}
	if rapid.IntRange(0, 15).Draw(t, "namespace goes") == 0 {
		in.Namespace = olmcore.Found(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, DeletionTimestamp: ago(time.Second)}})
	}
	in.RBACChanged = rapid.IntRange(0, 5).Draw(t, "rbac") == 0
	return in
}
