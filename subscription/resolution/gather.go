// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"context"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Resolve for a namespace from r. CatalogSources in globalCatalogNamespace are visible to
// every namespace. If globalCatalogNamespace is empty, there are no global catalogs.
//
// content contains the catalogs that the caller read, by the namespace and name of the CatalogSource. A CatalogSource
// without an entry in content is unavailable. The other fields of Input are optional, and the caller sets them.
//
// Gather returns an error if a read fails, and an olmcore.ErrNotRead if r does not read one of the kinds.
func Gather(ctx context.Context, r olmcore.Reader, namespace, globalCatalogNamespace string,
	content map[types.NamespacedName]*Catalog) (Input, error) {
	in, err := gather(ctx, r, namespace, globalCatalogNamespace, content)
	return in, inputs.Needed(err, "what can be installed in a namespace")
}

func gather(ctx context.Context, r olmcore.Reader, namespace, globalCatalogNamespace string,
	content map[types.NamespacedName]*Catalog) (Input, error) {
	in := Input{Namespace: namespace, GlobalCatalogNamespace: globalCatalogNamespace, InFlight: map[string]string{}}
	var err error
	if in.OperatorGroups, err = olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil); err != nil {
		return Input{}, err
	}
	if in.Subscriptions, err = olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil); err != nil {
		return Input{}, err
	}
	if in.CSVs, err = olmcore.List[*v1alpha1.ClusterServiceVersion](ctx, r, namespace, nil); err != nil {
		return Input{}, err
	}
	for _, s := range in.Subscriptions {
		on, err := onItsWay(ctx, r, s)
		if err != nil {
			return Input{}, err
		}
		if on {
			in.InFlight[s.Name] = s.Status.CurrentCSV
		}
	}
	namespaces := []string{namespace}
	if globalCatalogNamespace != "" && globalCatalogNamespace != namespace {
		namespaces = append(namespaces, globalCatalogNamespace)
	}
	for _, from := range namespaces {
		sources, err := olmcore.List[*v1alpha1.CatalogSource](ctx, r, from, nil)
		if err != nil {
			return Input{}, err
		}
		for _, source := range sources {
			key := types.NamespacedName{Namespace: from, Name: source.Name}
			state := CatalogState{Key: key, Priority: source.Spec.Priority, Content: content[key]}
			if state.Content == nil {
				state.Problem = "its content was not read"
			}
			in.Catalogs = append(in.Catalogs, state)
		}
	}
	return in, nil
}

// onItsWay reports whether the plan of a Subscription's current version still runs or waits.
func onItsWay(ctx context.Context, r olmcore.Reader, s *v1alpha1.Subscription) (bool, error) {
	ref := s.Status.InstallPlanRef
	if ref == nil || s.Status.CurrentCSV == "" || s.Status.CurrentCSV == s.Status.InstalledCSV {
		return false, nil
	}
	plan, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, r, s.Namespace, ref.Name)
	return plan != nil && plan.DeletionTimestamp == nil && plan.Status.Phase != v1alpha1.InstallPlanPhaseFailed, err
}
