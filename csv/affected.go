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
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/olmcore"
)

// Affected returns the keys of the CSVs whose outcome may change when o is added, updated or deleted. For an update,
// call it for the old and the new object, and use the keys of both calls. A key with an empty Name means all CSVs of
// the Namespace. The zero key means all CSVs. Use olmcore.ExpandKeys to expand such keys, or Concerned to select fewer
// CSVs.
//
// Affected returns no keys for some objects that a cleanup waits for, such as CSVs of other namespaces that use the
// same CRDs. Reconcile requests a retry after at most a minute for these objects, and after ten seconds for the Pods
// behind a disrupted APIService.
func Affected(o olmcore.Object) []types.NamespacedName {
	if olmcore.RefOf(o).Kind == "" {
		return nil
	}
	keys := append(related(o), requirements.concerned(o)...)
	var distinct []types.NamespacedName
	for _, key := range keys {
		isIn := func(wider types.NamespacedName) bool { return wider != key && slices.Contains(keys, wider) }
		isCovered := isIn(types.NamespacedName{}) || isIn(types.NamespacedName{Namespace: key.Namespace}) || slices.Contains(distinct, key)
		if !isCovered {
			distinct = append(distinct, key)
		}
	}
	return distinct
}

// relation is one row of the table of kinds that affect CSVs in addition to the requirements. A relation returns the
// keys of the CSVs that an object affects. includesOwners is true if the keys include the owners of the object. For an
// object of another kind, a relation returns no keys.
type relation func(o olmcore.Object) (keys []types.NamespacedName, includesOwners bool)

// relations is the table. To add a kind, add a row.
var relations = []relation{
	relationOf(relatedToCSV),
	relationOf(relatedToGroup),
	relationOf(func(o *operatorsv2.OperatorCondition) ([]types.NamespacedName, bool) { return allOf(o.Namespace), true }),
	// An unmanaged Deployment may prevent the installation of any CSV. So may a Service or Secret with a name that serving
	// needs.
	relationOf(func(o *appsv1.Deployment) ([]types.NamespacedName, bool) { return allOf(o.Namespace), true }),
	relationOf(func(o *corev1.Service) ([]types.NamespacedName, bool) { return relatedByServingName(o) }),
	relationOf(func(o *corev1.Secret) ([]types.NamespacedName, bool) { return relatedByServingName(o) }),
	relationOf(relatedToRoleBinding),
	relationOf(relatedToValidatingWebhooks),
	relationOf(relatedToMutatingWebhooks),
	relationOf(relatedToSubscription),
	relationOf(func(o *corev1.Namespace) ([]types.NamespacedName, bool) { return allOf(o.Name), true }),
}

func relationOf[T olmcore.Object](keys func(T) ([]types.NamespacedName, bool)) relation {
	return func(o olmcore.Object) ([]types.NamespacedName, bool) {
		if o, ok := o.(T); ok {
			return keys(o)
		}
		return nil, false
	}
}

// related returns the keys of the CSVs that an object affects: its owners, and the CSVs that the relations return.
func related(o olmcore.Object) []types.NamespacedName {
	var others []types.NamespacedName
	for _, row := range relations {
		keys, includesOwners := row(o)
		if includesOwners {
			return keys
		}
		others = append(others, keys...)
	}
	return append(ownersOf(o), others...)
}

// allOf returns the key of all CSVs of a namespace.
func allOf(namespace string) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: namespace}}
}

func relatedToCSV(o *v1alpha1.ClusterServiceVersion) ([]types.NamespacedName, bool) {
	if !o.IsCopied() {
		return allOf(o.Namespace), true // the object does not tell which CSVs replace it
	}
	var keys []types.NamespacedName
	if slices.Contains(o.Finalizers, cleanup.Finalizer) {
		keys = []types.NamespacedName{{Namespace: o.Namespace, Name: o.Name}} // the finalizer is removed
	}
	if from := o.Labels[v1alpha1.CopiedLabelKey]; from != "" {
		keys = append(keys, types.NamespacedName{Namespace: from, Name: o.Name}) // the cleanup of the original deletes it
	}
	return keys, true
}

func relatedToGroup(o *operatorsv1.OperatorGroup) ([]types.NamespacedName, bool) {
	if model.ProvidedAPIsAnnotation(o) != "" {
		return everyCSV, true // the object does not tell which CSVs provide the same APIs
	}
	return allOf(o.Namespace), true
}

func relatedByServingName(o olmcore.Object) ([]types.NamespacedName, bool) {
	if !internalserving.IsObjectName(o.GetName()) {
		return nil, false
	}
	return allOf(o.GetNamespace()), true
}

// relatedToRoleBinding returns the namespaces of the ServiceAccounts that a RoleBinding of kube-system binds.
func relatedToRoleBinding(o *rbacv1.RoleBinding) (keys []types.NamespacedName, includesOwners bool) {
	if o.Namespace != metav1.NamespaceSystem {
		return nil, false
	}
	namespaces, _ := rbac.SubjectNamespaces(o.Subjects)
	for _, namespace := range namespaces {
		keys = append(keys, allOf(namespace)...)
	}
	return keys, false
}

func relatedToValidatingWebhooks(
	o *admissionregistrationv1.ValidatingWebhookConfiguration,
) (keys []types.NamespacedName, includesOwners bool) {
	for i := range o.Webhooks {
		keys = append(keys, calledIn(&o.Webhooks[i].ClientConfig)...)
	}
	return keys, false
}

func relatedToMutatingWebhooks(
	o *admissionregistrationv1.MutatingWebhookConfiguration,
) (keys []types.NamespacedName, includesOwners bool) {
	for i := range o.Webhooks {
		keys = append(keys, calledIn(&o.Webhooks[i].ClientConfig)...)
	}
	return keys, false
}

func relatedToSubscription(o *v1alpha1.Subscription) (keys []types.NamespacedName, includesOwners bool) {
	for _, name := range []string{o.Status.InstalledCSV, o.Status.CurrentCSV} {
		if name != "" {
			keys = append(keys, types.NamespacedName{Namespace: o.Namespace, Name: name})
		}
	}
	return keys, false
}

// calledIn returns the key of all CSVs of the namespace of the Service that a webhook calls.
func calledIn(client *admissionregistrationv1.WebhookClientConfig) []types.NamespacedName {
	if client.Service == nil || client.Service.Namespace == "" {
		return nil
	}
	return allOf(client.Service.Namespace)
}

// ownersOf returns the keys of the CSVs that the owner labels, the annotation of co-owners or the owner references
// name.
func ownersOf(o olmcore.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	if ok && owner.Kind == v1alpha1.ClusterServiceVersionKind {
		keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
	}
	if o.GetNamespace() == metav1.NamespaceAll {
		for _, owner := range olmcore.CoOwners(o.GetAnnotations()) {
			keys = append(keys, types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
		}
	}
	for _, r := range o.GetOwnerReferences() {
		if model.IsCSVReference(r) && o.GetNamespace() != "" {
			keys = append(keys, types.NamespacedName{Namespace: o.GetNamespace(), Name: r.Name})
		}
	}
	return keys
}

// Terms calls add with each index term of an original CSV. A copy has no terms. If Concerned returns Terms for a change
// that affects the CSV, they contain at least one of these terms.
func Terms(c *v1alpha1.ClusterServiceVersion, add func(olmcore.Term)) {
	if c.IsCopied() {
		return
	}
	add(model.OwnerTerm(c))
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
	termsOfAPIs(model.ProvidedAPIs(c), add)
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

// unsettled is the term of CSVs that are not Succeeded.
var unsettled = olmcore.Term{Of: "unsettled"}

// Concerned selects the original CSVs that the change of an object from old to next affects. If Affected returns a key
// for several CSVs, use Concerned to select among them. old is nil if the old object is not known.
func Concerned(old, next olmcore.Object) olmcore.Concern[*v1alpha1.ClusterServiceVersion] {
	of, isKnown := concernedBy(old, next)
	if !isKnown {
		of.Is = func(*v1alpha1.ClusterServiceVersion) bool { return true }
		return of
	}
	if of.Terms != nil {
		of.Terms = append(of.Terms, model.OwnerTerms(old, next)...)
	}
	concerns := of.Is
	owns := func(c *v1alpha1.ClusterServiceVersion, o olmcore.Object) bool {
		return o != nil && (model.OwnerOf(c).Owns(o.GetLabels()) || model.IsCoOwner(c, o))
	}
	of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
		return c != nil && !c.IsCopied() && (concerns(c) || owns(c, next) || owns(c, old))
	}
	return of
}

// concernedBy returns the CSVs that a change concerns, without the owners of the object. isKnown is false for a kind
// whose change concerns every CSV.
func concernedBy(old, next olmcore.Object) (of olmcore.Concern[*v1alpha1.ClusterServiceVersion], isKnown bool) {
	switch next := next.(type) {
	case *operatorsv1.OperatorGroup:
		before, _ := old.(*operatorsv1.OperatorGroup)
		return concernedByGroup(before, next), true
	case *apiextensionsv1.CustomResourceDefinition:
		return concernedByDefinition(next), true
	case *apiregistrationv1.APIService:
		return concernedByAPIService(next), true
	case *rbacv1.ClusterRole:
		before, _ := old.(*rbacv1.ClusterRole)
		return concernedByClusterRole(before, next), true
	}
	return of, false
}

// concernedByGroup returns the CSVs of the namespace of an OperatorGroup, and those that provide an API that it lists
// or listed. before may be nil.
func concernedByGroup(before, next *operatorsv1.OperatorGroup) (of olmcore.Concern[*v1alpha1.ClusterServiceVersion]) {
	listed := sets.Set[model.API]{}
	for _, g := range []*operatorsv1.OperatorGroup{before, next} {
		if g != nil {
			apis := model.ListedAPIs(g)
			listed.Insert(apis...)
			termsOfAPIs(apis, func(term olmcore.Term) { of.Terms = append(of.Terms, term) })
		}
	}
	of.Terms = append(of.Terms, ofNamespace(next.Namespace))
	of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
		return c.Namespace == next.Namespace || listed.HasAny(model.ProvidedAPIs(c)...)
	}
	return of
}

func concernedByDefinition(crd *apiextensionsv1.CustomResourceDefinition) (of olmcore.Concern[*v1alpha1.ClusterServiceVersion]) {
	of.Terms = []olmcore.Term{ofDefinition(crd.Name), ofAPIGroup(crd.Spec.Group)}
	of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
		d := &c.Spec.CustomResourceDefinitions
		return model.DescribesCRD(d.Owned, crd.Name) || model.DescribesCRD(d.Required, crd.Name) || servesGroup(c, crd.Spec.Group)
	}
	return of
}

func concernedByAPIService(service *apiregistrationv1.APIService) (of olmcore.Concern[*v1alpha1.ClusterServiceVersion]) {
	isDescribed := func(d v1alpha1.APIServiceDescription) bool { return d.GetName() == service.Name }
	of.Terms = []olmcore.Term{ofAPIService(service.Name), ofAPIGroup(service.Spec.Group)}
	of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
		d := &c.Spec.APIServiceDefinitions
		return slices.ContainsFunc(d.Owned, isDescribed) || slices.ContainsFunc(d.Required, isDescribed) || servesGroup(c, service.Spec.Group)
	}
	return of
}

// concernedByClusterRole returns the CSVs that are not Succeeded, and those with a permission that the change grants or
// withdraws. before may be nil.
func concernedByClusterRole(before, next *rbacv1.ClusterRole) (of olmcore.Concern[*v1alpha1.ClusterServiceVersion]) {
	touched := rbac.Changed(before, next).Touching()
	if touched.Terms != nil {
		of.Terms = append(touched.Terms, unsettled)
	}
	of.Is = func(c *v1alpha1.ClusterServiceVersion) bool {
		return c.Status.Phase != v1alpha1.CSVPhaseSucceeded || slices.ContainsFunc(permissionsOf(c), func(p permission) bool {
			return slices.ContainsFunc(p.rules, touched.Is)
		})
	}
	return of
}

// servesGroup reports whether a CSV owns an APIService of an API group. The group of an object cannot be changed.
func servesGroup(c *v1alpha1.ClusterServiceVersion, group string) bool {
	return slices.ContainsFunc(c.Spec.APIServiceDefinitions.Owned, func(d v1alpha1.APIServiceDescription) bool { return d.Group == group })
}
