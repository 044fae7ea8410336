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
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/olmcore"
)

// relation is one row of the table of kinds that concern CSVs. An object concerns the CSVs that have one of its terms.
// Affected, Concerned and Terms derive from the table. An object also concerns the CSVs that it records as owners, also
// if its kind has no row.
type relation struct {
	kind schema.GroupVersionKind
	// changed returns the terms of the CSVs that the change of an object concerns. old or next is nil if it is not known.
	changed func(old, next olmcore.Object) []olmcore.Term
	// needed calls add with the terms of the objects of this kind that a CSV needs. It is nil if the terms of the objects
	// contain only namespaces and keys, which all CSVs have as terms.
	needed func(c *version, add func(olmcore.Term))
	// ignoresOwners is true if an object does not concern the CSVs that it records as owners.
	ignoresOwners bool
}

// relations is the table. To add a kind that is no requirement, add a row. The rows of requirements are in the field
// relations of the table of requirements.
var relations = slices.Concat([]relation{
	ignoringOwners(relationOf(termsOfCSV)),
	ignoringOwners(relatedGroups),
	ignoringOwners(relationOf(func(o *operatorsv2.OperatorCondition) []olmcore.Term { return inNamespace(o.Namespace) })),
	// An unmanaged Deployment may prevent the installation of any CSV. So may a Service or Secret with a name that serving
	// needs.
	ignoringOwners(relationOf(func(o *appsv1.Deployment) []olmcore.Term { return inNamespace(o.Namespace) })),
	ignoringOwners(relationOf(func(o *corev1.Namespace) []olmcore.Term { return inNamespace(o.Name) })),
	relationOf(func(o *corev1.Service) []olmcore.Term { return termsOfServingName(o) }),
	relationOf(func(o *corev1.Secret) []olmcore.Term { return termsOfServingName(o) }),
	relationOf(termsOfSystemBinding),
	relationOf(termsOfValidatingWebhooks),
	relationOf(termsOfMutatingWebhooks),
	relationOf(model.SubscriptionTerms),
}, requirements.relations())

// The rows of kinds that concern CSVs of any namespace.
var (
	// relatedGroups relates an OperatorGroup to the CSVs of its namespace, and to those that provide an API that it lists.
	relatedGroups = relationOf(termsOfGroup).to(func(c *version, add func(olmcore.Term)) {
		addAll(add, model.APITerms(model.ProvidedAPIs(c)))
	})
	// relatedCRDs relates a CRD to the CSVs that own or require it, and to those that own an APIService of its API group.
	relatedCRDs = relationOf(termsOfCRD).to(func(c *version, add func(olmcore.Term)) {
		addAll(add, model.CRDTerms(c.Spec.CustomResourceDefinitions.Owned))
		addAll(add, model.CRDTerms(c.Spec.CustomResourceDefinitions.Required))
		addOwnedGroups(c, add)
	})
	// relatedAPIServices relates an APIService to the CSVs that own or require it, and to those that own an APIService of
	// its API group.
	relatedAPIServices = relationOf(termsOfAPIService).to(func(c *version, add func(olmcore.Term)) {
		for _, d := range slices.Concat(c.Spec.APIServiceDefinitions.Owned, c.Spec.APIServiceDefinitions.Required) {
			add(model.APIServiceTerm(d.GetName()))
		}
		addOwnedGroups(c, add)
	})
	// relatedClusterRoles relates a ClusterRole to the CSVs with a permission that it grants, and to those that are not
	// Succeeded.
	relatedClusterRoles = relation{
		kind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), changed: termsOfClusterRole,
		needed: func(c *version, add func(olmcore.Term)) {
			if c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
				add(unsettled)
			}
			for _, p := range permissionsOf(c) {
				for _, rule := range p.rules {
					rbac.AddTerms(rule, add)
				}
			}
		},
	}
	// relatedPermissions relates the other kinds that grant permissions to the CSVs of the namespaces of the accounts.
	relatedPermissions = []relation{
		relationOf(func(o *corev1.ServiceAccount) []olmcore.Term { return inNamespace(o.Namespace) }),
		relationOf(func(o *rbacv1.Role) []olmcore.Term { return inNamespace(o.Namespace) }),
		relationOf(func(o *rbacv1.RoleBinding) []olmcore.Term { return inNamespace(o.Namespace) }),
		relationOf(termsOfClusterRoleBinding),
	}
)

// relationOf returns a row for a kind with an API type.
func relationOf[T interface {
	olmcore.Object
	comparable
}](terms func(T) []olmcore.Term) relation {
	return relation{kind: olmcore.GVKOf(*new(T)), changed: func(old, next olmcore.Object) (all []olmcore.Term) {
		for _, o := range []olmcore.Object{old, next} {
			object, is := o.(T)
			if is && object != *new(T) {
				all = append(all, terms(object)...)
			}
		}
		return all
	}}
}

// to returns the row with the terms of the objects that a CSV needs.
func (r relation) to(needed func(c *version, add func(olmcore.Term))) relation {
	r.needed = needed
	return r
}

func ignoringOwners(r relation) relation {
	r.ignoresOwners = true
	return r
}

// unsettled is the term of CSVs that are not Succeeded. anyCSV is a term that stands for all CSVs. No CSV has it.
var (
	unsettled = olmcore.Term{Of: "unsettled"}
	anyCSV    = olmcore.Term{Of: "any CSV"}
)

func addAll(add func(olmcore.Term), terms []olmcore.Term) {
	for _, term := range terms {
		add(term)
	}
}

// addOwnedGroups adds the API groups of the owned APIServices of a CSV.
func addOwnedGroups(c *version, add func(olmcore.Term)) {
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		add(model.APIGroupTerm(d.Group))
	}
}

// inNamespace returns the term of all CSVs of a namespace.
func inNamespace(name string) []olmcore.Term { return []olmcore.Term{model.NamespaceTerm(name)} }

func inNamespaces(names []string) (terms []olmcore.Term) {
	for _, name := range names {
		terms = append(terms, model.NamespaceTerm(name))
	}
	return terms
}

func termsOfCSV(o *version) (terms []olmcore.Term) {
	if !o.IsCopied() {
		return inNamespace(o.Namespace) // the object does not tell which CSVs replace it
	}
	if slices.Contains(o.Finalizers, cleanup.Finalizer) {
		terms = append(terms, model.OwnerTerm(o)) // the finalizer is removed
	}
	if o.Labels[olmcore.LabelCopiedFrom] != "" {
		terms = append(terms, model.KeyTerm(model.OriginalKey(o))) // the cleanup of the original deletes it
	}
	return terms
}

func termsOfGroup(o *operatorsv1.OperatorGroup) []olmcore.Term {
	return append(inNamespace(o.Namespace), model.APITerms(model.ListedAPIs(o))...)
}

func termsOfCRD(o *apiextensionsv1.CustomResourceDefinition) []olmcore.Term {
	return []olmcore.Term{model.CRDTerm(o.Name), model.APIGroupTerm(o.Spec.Group)}
}

func termsOfAPIService(o *apiregistrationv1.APIService) []olmcore.Term {
	return []olmcore.Term{model.APIServiceTerm(o.Name), model.APIGroupTerm(o.Spec.Group)}
}

func termsOfClusterRole(old, next olmcore.Object) []olmcore.Term {
	before, _ := old.(*rbacv1.ClusterRole)
	after, is := next.(*rbacv1.ClusterRole)
	if !is || after == nil {
		return nil
	}
	return append(rbac.Changed(before, after).Terms(), unsettled)
}

func termsOfClusterRoleBinding(o *rbacv1.ClusterRoleBinding) []olmcore.Term {
	namespaces, all := rbac.SubjectNamespaces(o.Subjects)
	if all {
		return []olmcore.Term{anyCSV}
	}
	return inNamespaces(namespaces)
}

func termsOfServingName(o olmcore.Object) []olmcore.Term {
	if !internalserving.IsObjectName(o.GetName()) {
		return nil
	}
	return inNamespace(o.GetNamespace())
}

// termsOfSystemBinding returns the namespaces of the ServiceAccounts that a RoleBinding of kube-system binds.
func termsOfSystemBinding(o *rbacv1.RoleBinding) []olmcore.Term {
	if o.Namespace != metav1.NamespaceSystem {
		return nil
	}
	namespaces, _ := rbac.SubjectNamespaces(o.Subjects)
	return inNamespaces(namespaces)
}

func termsOfValidatingWebhooks(o *admissionregistrationv1.ValidatingWebhookConfiguration) (terms []olmcore.Term) {
	for i := range o.Webhooks {
		terms = append(terms, calledIn(&o.Webhooks[i].ClientConfig)...)
	}
	return terms
}

func termsOfMutatingWebhooks(o *admissionregistrationv1.MutatingWebhookConfiguration) (terms []olmcore.Term) {
	for i := range o.Webhooks {
		terms = append(terms, calledIn(&o.Webhooks[i].ClientConfig)...)
	}
	return terms
}

// calledIn returns the namespace of the Service that a webhook calls.
func calledIn(client *admissionregistrationv1.WebhookClientConfig) []olmcore.Term {
	if client.Service == nil || client.Service.Namespace == "" {
		return nil
	}
	return inNamespace(client.Service.Namespace)
}
