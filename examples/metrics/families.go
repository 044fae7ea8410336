// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/olmcore/olm/controllers"
)

// Types of metrics, in Prometheus's words.
const (
	Gauge   = "gauge"
	Counter = "counter"
	Summary = "summary"
)

// Family is a row of the table of metrics.
type Family struct {
	Name, Type, Help string
	Labels           []string
	// OLM: the metric has OLM's name and labels.
	OLM bool
	// Controller reconciles what the metric is about: who does not run it does not export it. Empty for what is about the
	// export itself, or each controller.
	Controller string
	// Reads are the kinds without which there is no such metric; none for what is counted as it happens.
	Reads []string

	desc *prometheus.Desc
}

// Families returns the table of all metrics: for documents, and for tests of dashboards and alerts.
func Families() []Family { return slices.Clone(families) }

const (
	catalogs      = v1alpha1.CatalogSourceKind
	subscriptions = v1alpha1.SubscriptionKind
	plans         = v1alpha1.InstallPlanKind
	versions      = v1alpha1.ClusterServiceVersionKind
	groups        = "OperatorGroup"
	namespaces    = "Namespace"
)

// sync has its own name for what a Subscription tells of itself, as OLM does.
var syncLabels = []string{"name", "installed", "channel", "package", "approval"}

// families is the table, sorted by name. Whoever adds a metric adds one row.
var families = described([]Family{
	{Name: "catalog_source_count", Type: Gauge, Controller: controllers.Catalog, OLM: true, Reads: []string{catalogs},
		Help: "Number of CatalogSources."},
	{Name: "catalog_source_snapshots_total", Type: Counter, Controller: controllers.Catalog, OLM: true, Reads: []string{catalogs}, Labels: []string{"namespace", "name"},
		Help: "How often the content of a CatalogSource was read."},
	{Name: "catalogsource_ready", Type: Gauge, Controller: controllers.Catalog, OLM: true, Reads: []string{catalogs}, Labels: []string{"namespace", "name"},
		Help: "1 when a CatalogSource can be asked for its content, else 0."},
	{Name: "csv_abnormal", Type: Gauge, Controller: controllers.CSV, OLM: true, Reads: []string{versions}, Labels: []string{"namespace", "name", "version", "phase", "reason"},
		Help: "1 for a ClusterServiceVersion, copies left out, whose phase is not Succeeded."},
	{Name: "csv_count", Type: Gauge, Controller: controllers.CSV, OLM: true, Reads: []string{versions},
		Help: "Number of ClusterServiceVersions, copies left out."},
	{Name: "csv_succeeded", Type: Gauge, Controller: controllers.CSV, OLM: true, Reads: []string{versions}, Labels: []string{"namespace", "name", "version"},
		Help: "1 when the phase of a ClusterServiceVersion, copies left out, is Succeeded, else 0."},
	{Name: "csv_upgrade_count", Type: Counter, Controller: controllers.CSV, OLM: true,
		Help: "How often a ClusterServiceVersion began to be replaced by a newer one."},
	{Name: "install_plan_count", Type: Gauge, Controller: controllers.InstallPlan, OLM: true, Reads: []string{plans},
		Help: "Number of InstallPlans."},
	{Name: "installplan_warnings_total", Type: Counter, Controller: controllers.InstallPlan, OLM: true,
		Help: "Warnings of the API server about what InstallPlans apply, such as deprecations."},
	{Name: "olm_action_errors_total", Type: Counter, Labels: []string{"controller", "class"},
		Help: "Writes that failed, by the class of the error."},
	{Name: "olm_actions_total", Type: Counter, Labels: []string{"controller", "verb"},
		Help: "Writes that succeeded."},
	{Name: "olm_catalog_source_failed_node_timestamp_seconds", Type: Gauge, Controller: controllers.Catalog, Reads: []string{catalogs}, Labels: []string{"namespace", "name", "node_state"},
		Help: "Since when a node has failed that a Pod of a CatalogSource runs on, the earliest of each state of nodes."},
	{Name: "olm_catalog_source_not_serving_timestamp_seconds", Type: Gauge, Controller: controllers.Catalog, Reads: []string{catalogs}, Labels: []string{"namespace", "name", "state", "reason"},
		Help: "Since when a CatalogSource does not serve, or is not known to; absent while it serves."},
	{Name: "olm_catalog_source_pods", Type: Gauge, Controller: controllers.Catalog, Reads: []string{catalogs}, Labels: []string{"namespace", "name", "class"},
		Help: "Pods of a CatalogSource by what they are worth."},
	{Name: "olm_csv_cleanup_objects", Type: Gauge, Controller: controllers.CSV, Reads: []string{versions}, Labels: []string{"namespace", "name", "stage"},
		Help: "Objects that hold up the cleanup of a deleted ClusterServiceVersion in its present stage."},
	{Name: "olm_csv_cleanup_timestamp_seconds", Type: Gauge, Controller: controllers.CSV, Reads: []string{versions}, Labels: []string{"namespace", "name", "stage"},
		Help: "When a ClusterServiceVersion was deleted whose cleanup is not at its end, by the stage that it is in."},
	{Name: "olm_install_plan_waiting_timestamp_seconds", Type: Gauge, Controller: controllers.InstallPlan, Reads: []string{plans}, Labels: []string{"namespace"},
		Help: "When the oldest InstallPlan of a namespace was made that waits for approval; absent when none does."},
	{Name: "olm_install_plans", Type: Gauge, Controller: controllers.InstallPlan, Reads: []string{plans}, Labels: []string{"namespace", "phase"},
		Help: "InstallPlans of a namespace by phase."},
	{Name: "olm_install_plans_without_owner", Type: Gauge, Controller: controllers.InstallPlan, Reads: []string{plans, subscriptions, namespaces}, Labels: []string{"namespace"},
		Help: "InstallPlans of a namespace that no Subscription owns."},
	{Name: "olm_kind_readable", Type: Gauge, Labels: []string{"kind"},
		Help: "1 when the objects of a kind were read, 0 when that failed; absent when the kind is not read at all."},
	{Name: "olm_metrics_series_left_out", Type: Gauge, Labels: []string{"metric"},
		Help: "Series that there would be without the limit for each namespace; absent when there are none."},
	{Name: "olm_objects_not_assessed", Type: Gauge, Labels: []string{"kind"},
		Help: "Objects that nothing can be said about, as they or what is around them could not be read; absent when there are none."},
	{Name: "olm_requests_total", Type: Counter, Labels: []string{"controller", "request"},
		Help: "What reconciles asked for that others must answer."},
	{Name: "olm_resolution_duration_seconds", Type: Summary, Controller: controllers.Subscription, OLM: true, Labels: []string{"outcome"},
		Help: "How long it took to resolve a namespace, by whether there was a solution."},
	{Name: "olm_subscription_conditions", Type: Gauge, Controller: controllers.Subscription, Reads: []string{subscriptions}, Labels: []string{"namespace", "condition"},
		Help: "Subscriptions of a namespace with a condition of the library that is True."},
	{Name: "olm_subscription_health_timestamp_seconds", Type: Gauge, Controller: controllers.Subscription, Reads: []string{subscriptions, plans, versions, groups}, Labels: []string{"namespace", "health"},
		Help: "Since when a Subscription of a namespace has not been Installed, the earliest of each answer to how it stands."},
	{Name: "olm_subscriptions", Type: Gauge, Controller: controllers.Subscription, Reads: []string{subscriptions, plans, versions, groups}, Labels: []string{"namespace", "health"},
		Help: "Subscriptions of a namespace by how they stand together with their InstallPlans and ClusterServiceVersions."},
	{Name: "olm_subscriptions_out_of_step", Type: Gauge, Controller: controllers.Subscription, Reads: []string{subscriptions, plans, versions, groups}, Labels: []string{"namespace"},
		Help: "Subscriptions of a namespace whose status tells something else of their InstallPlan or version than these do."},
	{Name: "olm_transitions_total", Type: Counter, Labels: []string{"kind", "type", "to", "certainty"},
		Help: "State changes of objects, by how certain it is that they took place."},
	{Name: "subscription_count", Type: Gauge, Controller: controllers.Subscription, OLM: true, Reads: []string{subscriptions},
		Help: "Number of Subscriptions."},
	{Name: "subscription_sync_total", Type: Counter, Controller: controllers.Subscription, OLM: true, Reads: []string{subscriptions}, Labels: syncLabels,
		Help: "How often Subscriptions with these labels were written, beginning with 1."},
})

func described(rows []Family) []Family {
	for i := range rows {
		f := &rows[i]
		f.desc = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	return rows
}

// row returns the row of a name, which must be there.
func row(name string) *Family {
	i, found := slices.BinarySearchFunc(families, name, func(f Family, name string) int { return strings.Compare(f.Name, name) })
	if !found {
		panic("no metric has the name " + name)
	}
	return &families[i]
}

// selection are names of controllers; none stands for all.
type selection []string

func (s selection) has(controller string) bool {
	return controller == "" || len(s) == 0 || slices.Contains(s, controller)
}

// needs reports whether there are metrics of the selection that read a kind.
func (s selection) needs(kind string) bool {
	return slices.ContainsFunc(families, func(f Family) bool { return s.has(f.Controller) && slices.Contains(f.Reads, kind) })
}
