// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// verbOf returns the verb of RBAC for each Verb.
var verbOf = map[olmcore.Verb]string{
	olmcore.VerbCreate: "create", olmcore.VerbUpdate: "patch", olmcore.VerbUpdateStatus: "patch", olmcore.VerbDelete: "delete",
}

// withinRights makes a controller report reads and writes that its own rights do not allow, so that it does not depend
// on the rights of another controller. It also reports selectors for which there is no index. Custom resources do not
// count, as an administrator grants the rights to them.
func withinRights(o controllers.Options, c *controller.Controller, tell func(error)) {
	reconcile, allowed := c.Reconcile, rightsOf(o, c.Name)
	check := func(verb string, gvk schema.GroupVersionKind, subresource string) {
		if kind, known := olmcore.KindOf(gvk.GroupKind()); known && !allowed(verb, kind.Group, kind.Plural+subresource) {
			tell(fmt.Errorf("%s has no right to %s %s%s", c.Name, verb, kind.Resource(), subresource))
		}
	}
	c.Reconcile = func(
		ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
	) (olmcore.Result, error) {
		result, err := reconcile(ctx, checkedReader{r, check, tell}, key, now, last)
		for _, a := range result.Actions {
			verb, target, _ := a.Describe()
			switch {
			case a.Identity() != nil:
				check("impersonate", corev1.SchemeGroupVersion.WithKind("ServiceAccount"), "")
			case verb == olmcore.VerbUpdateStatus:
				check(verbOf[verb], target.GVK(), "/status")
			default:
				check(verbOf[verb], target.GVK(), "")
			}
		}
		return result, err
	}
}

// rightsOf returns a function that reports whether some controllers may use a verb on a resource.
func rightsOf(o controllers.Options, only ...string) func(verb, group, resource string) bool {
	rights := o.Rights(only...)
	rules := slices.Concat(rights.Cluster, rights.Namespace)
	return func(verb, group, resource string) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	}
}

type checkedReader struct {
	olmcore.Reader
	check func(verb string, gvk schema.GroupVersionKind, subresource string)
	tell  func(error)
}

func (r checkedReader) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	r.check("get", gvk, "")
	return r.Reader.Get(ctx, gvk, namespace, name)
}

func (r checkedReader) List(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	namespace string,
	selector labels.Selector,
) ([]olmcore.Object, error) {
	r.check("list", gvk, "")
	// Users write the selectors of OperatorGroups, for namespaces, and of Deployments, for Pods of their namespace.
	isUsers := gvk.Kind == "Namespace" || gvk.Kind == "Pod" && namespace != ""
	kind, _ := olmcore.KindOf(gvk.GroupKind()) // of what is not watched the API server selects
	if selector != nil && !selector.Empty() && !isUsers && kind.Watch != olmcore.WatchNever && olmcore.IndexTerm(gvk, selector) == "" {
		r.tell(fmt.Errorf("no index answers which %s are selected by %s", gvk.Kind, selector))
	}
	return r.Reader.List(ctx, gvk, namespace, selector)
}
