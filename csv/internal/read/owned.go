// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/olmcore"
)

var consoleGroup = schema.GroupVersion{Group: "console.openshift.io", Version: "v1"}

// clusterKinds is the table of the kinds of cluster-scoped objects that are looked for by owner labels: whoever adds a
// kind adds one row.
var clusterKinds = []schema.GroupVersionKind{
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
	apiregistrationv1.SchemeGroupVersion.WithKind("APIService"),
	schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
	consoleGroup.WithKind("ConsoleCLIDownload"),
	consoleGroup.WithKind("ConsoleLink"),
	consoleGroup.WithKind("ConsoleQuickStart"),
	consoleGroup.WithKind("ConsoleYAMLSample"),
}

// Owned reads the objects outside the namespaces, and the RoleBindings of kube-system, that a selector of owner labels
// selects, and returns the kinds that were not read. more are kinds besides those of the table.
func Owned(r *Reads, more []schema.GroupVersionKind, selector labels.Selector) (found olmcore.Observed[olmcore.Object], unread []schema.GroupKind) {
	found = olmcore.Found[olmcore.Object]()
	add := func(gvk schema.GroupVersionKind, namespace string) {
		list := Kind(r, gvk, namespace, selector)
		if !list.Complete {
			found.Complete, unread = false, append(unread, gvk.GroupKind())
			return
		}
		found.Items = append(found.Items, list.Items...)
	}
	kinds := slices.Clone(clusterKinds)
	for _, gvk := range more {
		if !slices.Contains(kinds, gvk) {
			kinds = append(kinds, gvk)
		}
	}
	for _, gvk := range kinds {
		add(gvk, metav1.NamespaceAll)
	}
	add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), metav1.NamespaceSystem)
	return found, unread
}

// OwnedList is the name of the list that Owned returns, with the kinds that it lacks.
func OwnedList(unread []schema.GroupKind) string {
	if len(unread) == 0 {
		return "objects with owner labels"
	}
	var kinds []string
	for _, kind := range unread {
		kinds = append(kinds, kind.Kind)
	}
	return "objects with owner labels of kind " + strings.Join(kinds, ", ")
}

// ValidateMixed returns an *olmcore.InputError for an entry of a list of objects of several kinds that is nil or of no
// known kind.
func ValidateMixed(field string, list olmcore.Observed[olmcore.Object]) error {
	for i, o := range list.Items {
		if olmcore.RefOf(o).Kind == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: "is nil or has no kind"}
		}
	}
	return nil
}
