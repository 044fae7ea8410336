// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the CSVs for which o's addition, change or deletion can change the outcome; an empty
// Name stands for every CSV of the Namespace, the zero key for every CSV (olmcore.ExpandKeys). Call it for the old and
// the new object and take both answers; Concerned tells which of all are meant.
//
// What a cleanup waits for beyond these, such as CSVs of other namespaces that use the same CRDs and instances of CRDs
// without owner labels, it looks at again after at most a minute; Pods whose APIService is disrupted after ten seconds.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.RefOf(o).Kind == "" {
		return nil
	}
	keys := append(concerned(o), requirements.concerned(o)...)
	var distinct []types.NamespacedName
	for _, key := range keys {
		isIn := func(wider types.NamespacedName) bool { return wider != key && slices.Contains(keys, wider) }
		if !isIn(types.NamespacedName{}) && !isIn(types.NamespacedName{Namespace: key.Namespace}) && !slices.Contains(distinct, key) {
			distinct = append(distinct, key)
		}
	}
	return distinct
}

// concerned returns the keys of the CSVs that own an object, and of those for which it matters besides their
// requirements.
func concerned(o olmcore.Object) []types.NamespacedName {
	keys := ownersOf(o)
	namespace := types.NamespacedName{Namespace: o.GetNamespace()}
	switch o := o.(type) {
	case *v1alpha1.ClusterServiceVersion:
		if !o.IsCopied() {
			return []types.NamespacedName{namespace} // those that replace it are not known from it
		}
		keys = nil
		if slices.Contains(o.Finalizers, cleanup.Finalizer) {
			keys = []types.NamespacedName{{Namespace: o.Namespace, Name: o.Name}} // from which it is taken off
		}
		if from := o.Labels[v1alpha1.CopiedLabelKey]; from != "" {
			keys = append(keys, types.NamespacedName{Namespace: from, Name: o.Name}) // whose cleanup deletes it
		}
	case *operatorsv1.OperatorGroup:
		if group.Annotation(o) != "" {
			return []types.NamespacedName{{}} // which CSVs provide the same is not known from it
		}
		return []types.NamespacedName{namespace}
	case *operatorsv2.OperatorCondition, *appsv1.Deployment: // an unmanaged Deployment can be in the way of any CSV
		return []types.NamespacedName{namespace}
	case *corev1.Service, *corev1.Secret: // likewise one with a name that serving takes
		if backend.IsObjectName(o.GetName()) {
			return []types.NamespacedName{namespace}
		}
	case *rbacv1.RoleBinding:
		if o.Namespace == metav1.NamespaceSystem {
			namespaces, _ := rbac.SubjectNamespaces(o.Subjects)
			for _, n := range namespaces {
				keys = append(keys, types.NamespacedName{Namespace: n})
			}
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			keys = append(keys, calledIn(&o.Webhooks[i].ClientConfig)...)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			keys = append(keys, calledIn(&o.Webhooks[i].ClientConfig)...)
		}
	case *v1alpha1.Subscription:
		for _, name := range []string{o.Status.InstalledCSV, o.Status.CurrentCSV} {
			if name != "" {
				keys = append(keys, types.NamespacedName{Namespace: o.Namespace, Name: name})
			}
		}
	case *corev1.Namespace:
		return []types.NamespacedName{{Namespace: o.Name}}
	}
	return keys
}

// calledIn returns the key of all CSVs of the namespace whose Service a webhook calls.
func calledIn(client *admissionregistrationv1.WebhookClientConfig) []types.NamespacedName {
	if client.Service == nil || client.Service.Namespace == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: client.Service.Namespace}}
}

// ownersOf reads the CSVs that the owner labels, the record of co-owners or the owner references name.
func ownersOf(o olmcore.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	if owner, ok := olmcore.OwnerOf(o.GetLabels()); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
		keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
	}
	if o.GetNamespace() == metav1.NamespaceAll {
		for _, owner := range olmcore.CoOwners(o.GetAnnotations()) {
			keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
		}
	}
	for _, r := range o.GetOwnerReferences() {
		if owned.IsReference(r) && o.GetNamespace() != "" {
			keys = append(keys, types.NamespacedName{Namespace: o.GetNamespace(), Name: r.Name})
		}
	}
	return keys
}

// Terms are what an original CSV is looked up by: each that a change concerns has one of those of Concerned.
func Terms(c *v1alpha1.ClusterServiceVersion, add func(olmcore.Term)) {
	if c.IsCopied() {
		return
	}
	add(owned.Term(c))
	add(ofNamespace(c.Namespace))
	for _, d := range slices.Concat(c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required) {
		add(ofDefinition(d.Name))
	}
	for _, d := range slices.Concat(c.Spec.APIServiceDefinitions.Owned, c.Spec.APIServiceDefinitions.Required) {
		add(ofAPIService(d.GetName()))
	}
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		add(ofAPIGroup(d.Group))
	}
	termsOfAPIs(group.Provided(c), add)
	for _, p := range permissionsOf(c) {
		for _, rule := range p.rules {
			for term := range rbac.Terms(rule) {
				add(term)
			}
		}
	}
	if c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		add(unsettled)
	}
}

func ofNamespace(name string) olmcore.Term  { return olmcore.Term{Of: "namespace", Value: name} }
func ofDefinition(name string) olmcore.Term { return olmcore.Term{Of: "definition", Value: name} }
func ofAPIService(name string) olmcore.Term { return olmcore.Term{Of: "APIService", Value: name} }
func ofAPIGroup(name string) olmcore.Term   { return olmcore.Term{Of: "API group", Value: name} }

var unsettled = olmcore.Term{Of: "unsettled"}

// Concerned returns which original CSVs a change concerns for which Affected, which knows one object alone, returns
// more than one key. old is nil where it is not known.
func Concerned(old, next olmcore.Object) (of olmcore.Concern[*v1alpha1.ClusterServiceVersion]) {
	switch next := next.(type) {
	case *operatorsv1.OperatorGroup:
		before, _ := old.(*operatorsv1.OperatorGroup)
		provides := provide(before, next)
		of.Terms = append(provides.Terms, ofNamespace(next.Namespace))
		of.Is = func(c *v1alpha1.ClusterServiceVersion) bool { return c.Namespace == next.Namespace || provides.Is(c) }
	case *apiextensionsv1.CustomResourceDefinition:
		of.Terms = []olmcore.Term{ofDefinition(next.Name), ofAPIGroup(next.Spec.Group)}
		of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
			d := &c.Spec.CustomResourceDefinitions
			return owned.Describes(d.Owned, next.Name) || owned.Describes(d.Required, next.Name) || servesGroup(c, next.Spec.Group)
		}
	case *apiregistrationv1.APIService:
		isIt := func(d v1alpha1.APIServiceDescription) bool { return d.GetName() == next.Name }
		of.Terms = []olmcore.Term{ofAPIService(next.Name), ofAPIGroup(next.Spec.Group)}
		of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
			d := &c.Spec.APIServiceDefinitions
			return slices.ContainsFunc(d.Owned, isIt) || slices.ContainsFunc(d.Required, isIt) || servesGroup(c, next.Spec.Group)
		}
	case *rbacv1.ClusterRole:
		before, _ := old.(*rbacv1.ClusterRole)
		touched := rbac.Changed(before, next).Touching()
		if touched.Terms != nil {
			of.Terms = append(touched.Terms, unsettled)
		}
		of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
			return c.Status.Phase != v1alpha1.CSVPhaseSucceeded || slices.ContainsFunc(permissionsOf(c), func(p permission) bool {
				return slices.ContainsFunc(p.rules, touched.Is)
			})
		}
	default:
		of.Is = func(*v1alpha1.ClusterServiceVersion) bool { return true }
		return of
	}
	if of.Terms != nil {
		of.Terms = append(of.Terms, owned.OwnerTerms(old, next)...)
	}
	concerns := of.Is
	owns := func(c *v1alpha1.ClusterServiceVersion, o olmcore.Object) bool {
		return o != nil && (owned.By(c).Owns(o.GetLabels()) || owned.IsCoOwner(c, o))
	}
	of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
		return c != nil && !c.IsCopied() && (concerns(c) || owns(c, next) || owns(c, old))
	}
	return of
}

// servesGroup reports whether a CSV owns an APIService of an API group. The API server lets no object change its group.
func servesGroup(c *v1alpha1.ClusterServiceVersion, group string) bool {
	return slices.ContainsFunc(c.Spec.APIServiceDefinitions.Owned, func(d v1alpha1.APIServiceDescription) bool { return d.Group == group })
}

// provide returns which CSVs provide an API that one of the OperatorGroups lists.
func provide(groups ...*operatorsv1.OperatorGroup) (of olmcore.Concern[*v1alpha1.ClusterServiceVersion]) {
	listed := sets.Set[group.API]{}
	for _, g := range groups {
		if g != nil {
			apis := group.Listed(g)
			listed.Insert(apis...)
			termsOfAPIs(apis, func(term olmcore.Term) { of.Terms = append(of.Terms, term) })
		}
	}
	of.Is = func(c *v1alpha1.ClusterServiceVersion) bool { return listed.HasAny(group.Provided(c)...) }
	return of
}
