// SPDX-License-Identifier: Apache-2.0

// Package plantest has what the tests of package installplan and those below it share: objects of a namespace at noon,
// and the Inputs that are made of them.
package plantest

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// NS is the namespace of the objects, Noon the time of the Inputs, Born when the objects were created.
const NS = "ops"

var (
	Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	Born = metav1.NewTime(Noon.Add(-time.Hour))
)

// Ago is a time before Noon.
func Ago(d time.Duration) *metav1.Time { return new(metav1.NewTime(Noon.Add(-d))) }

// Meta is the metadata of an object in NS.
func Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: NS, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: Born}
}

// ClusterMeta is the metadata of an object without namespace.
func ClusterMeta(name string) metav1.ObjectMeta {
	m := Meta(name)
	m.Namespace = ""
	return m
}

// HandedOver is the metadata of an object that OLM manages.
func HandedOver(name string) metav1.ObjectMeta {
	m := Meta(name)
	m.Labels = map[string]string{"olm.managed": "true"}
	return m
}

// Subscription follows the package of its name.
func Subscription(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{ObjectMeta: Meta(name), Spec: &v1alpha1.SubscriptionSpec{
		Package: name, Channel: "stable", CatalogSource: "cool", CatalogSourceNamespace: "olm",
	}}
	for _, f := range change {
		f(s)
	}
	return s
}

// Manual makes a Subscription ask for approval.
func Manual(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = v1alpha1.ApprovalManual }

// RefersTo makes a Subscription refer to a plan.
func RefersTo(plan string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: NS, Name: plan, UID: types.UID("uid-" + plan)}
	}
}

// OwnerRef is the owner reference to a Subscription.
func OwnerRef(s *v1alpha1.Subscription) metav1.OwnerReference { return olmcore.OwnerReferenceTo(s) }

// CSV is a ClusterServiceVersion that is installed.
func CSV(name string, change ...func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: Meta(name)}
	c.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	for _, f := range change {
		f(c)
	}
	return c
}

// Group is an OperatorGroup that manages NS.
func Group(change ...func(*operatorsv1.OperatorGroup)) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: Meta("group")}
	g.Status.Namespaces = []string{NS}
	for _, f := range change {
		f(g)
	}
	return g
}

// CRDObject is a CustomResourceDefinition of kind Thing as a bundle has it.
func CRDObject(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things", ListKind: "ThingList", Singular: "thing"},
		},
	}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Description: v}},
		})
	}
	return crd
}

// Installed is a CustomResourceDefinition as the cluster has it, handed to OLM.
func Installed(crd *apiextensionsv1.CustomResourceDefinition, established bool) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	m := ClusterMeta(crd.Name)
	m.Labels, _ = olmcore.MergeMaps(crd.Labels, map[string]string{"olm.managed": "true"})
	m.Annotations = crd.Annotations
	crd.ObjectMeta = m
	status := apiextensionsv1.ConditionFalse
	if established {
		status = apiextensionsv1.ConditionTrue
	}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: Born},
		{Type: apiextensionsv1.Established, Status: status, LastTransitionTime: Born},
	}
	return crd
}

// Operator is version 1 of a package with inline objects.
func Operator(pkg string, objects ...olmcore.Object) olmcore.Operator {
	name := pkg + ".v1"
	all := []olmcore.Object{CSV(name, func(c *v1alpha1.ClusterServiceVersion) { c.ObjectMeta = metav1.ObjectMeta{Name: name} })}
	return olmcore.Operator{
		Name: name, Package: pkg, Channel: "stable", Version: "1.0.0", Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"},
		Bundle: olmcore.Bundle{Objects: append(all, objects...)},
	}
}

// Rules are the permissions of a Role.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
}

// Generated says which plan made a Subscription.
func Generated(by string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: by}
	}
}

// Current sets status.currentCSV.
func Current(name string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = name }
}

// Maybe draws a bool.
func Maybe(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }

// AnyMeta draws the metadata of an object.
func AnyMeta(t *rapid.T, name, namespace string) metav1.ObjectMeta {
	m := Meta(name)
	m.Namespace = namespace
	if Maybe(t, "managed") {
		m.Labels = map[string]string{olmcore.LabelManaged: "true", "theirs": "kept"}
	}
	if rapid.IntRange(0, 7).Draw(t, "deleting") == 0 {
		m.DeletionTimestamp = Ago(time.Second)
		m.Finalizers = []string{"theirs"}
	}
	if Maybe(t, "annotated") {
		m.Annotations, m.Finalizers = map[string]string{"theirs": "kept"}, []string{"theirs"}
	}
	if Maybe(t, "foreign") {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "theirs"}}
	}
	switch rapid.IntRange(0, 7).Draw(t, "planned") {
	case 0, 1: // by another plan
		m.OwnerReferences = append(m.OwnerReferences, olmcore.OwnerReferenceTo(CSV("b.v1")))
		m.Annotations, _ = olmcore.MergeMaps(m.Annotations, map[string]string{"olmcore/step-hash": "other"})
	case 2: // of another namespace
		m.Labels, _ = olmcore.MergeMaps(
			m.Labels,
			(olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "there", Name: "a.v1", UID: "7"}).Labels(),
		)
	}
	return m
}

// AnySubscription draws a Subscription.
func AnySubscription(t *rapid.T, name string) *v1alpha1.Subscription {
	s := Subscription(name)
	s.ObjectMeta = AnyMeta(t, name, NS)
	s.UID = types.UID(rapid.SampledFrom([]string{"uid-" + name, "uid-" + name, "uid-" + name + "-again", ""}).Draw(t, "uid"))
	if Maybe(t, "recent") {
		s.CreationTimestamp = metav1.NewTime(Noon)
	}
	switch rapid.IntRange(0, 3).Draw(t, "ref") {
	case 0:
		RefersTo("install-x")(s)
	case 1:
		RefersTo("install-y")(s)
	}
	if Maybe(t, "manual") {
		Manual(s)
	}
	if rapid.IntRange(0, 3).Draw(t, "generated") == 0 {
		s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
	}
	if rapid.IntRange(0, 9).Draw(t, "spec") == 0 {
		s.Spec = nil
	}
	return s
}

// Bare is the metadata of an object as a bundle has it.
func Bare(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// Rich is an operator with an object of nearly every kind.
func Rich() olmcore.Operator {
	crd := CRDObject("v1")
	monitor := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "thing"},
	}}
	o := Operator(
		"rich",
		crd,
		monitor,
		&corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: Bare("service"),
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		},
		&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: Bare("config"),
			Data:       map[string]string{"a": "1"},
		},
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: Bare("role"),
			Rules:      Rules(),
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
			ObjectMeta: Bare("binding"),
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "role"},
		},
	)
	o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Spec.InstallStrategy.StrategySpec.ClusterPermissions =
		[]v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "rich", Rules: Rules()}}
	return o
}

// UserSubscription is a Subscription before it is created.
func UserSubscription(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := Subscription(name, change...)
	s.ObjectMeta = metav1.ObjectMeta{Namespace: NS, Name: name}
	return s
}

// PublishedOperator is the operator of a published bundle.
func PublishedOperator(b realdata.Bundle) olmcore.Operator {
	o := olmcore.Operator{
		Package: b.Operator,
		Channel: "stable",
		Version: b.Version,
		Catalog: types.NamespacedName{Namespace: "olm", Name: "cool"},
	}
	o.Bundle.Objects = b.Objects
	for _, object := range b.Objects {
		if c, ok := object.(*v1alpha1.ClusterServiceVersion); ok {
			o.Name, o.Replaces = c.Name, c.Spec.Replaces
		}
	}
	return o
}

// Scoped is a group that prescribes an account, which its status confirms.
func Scoped(name string) *operatorsv1.OperatorGroup {
	return Group(func(g *operatorsv1.OperatorGroup) {
		g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = name, &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: name}
	})
}
