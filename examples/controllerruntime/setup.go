// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"cmp"
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/installplan"
)

// watchedKinds are the kinds that the packages' Affected functions know, as
// apiVersion and kinds; true: a shard holds those of its namespaces alone.
var watchedKinds = map[schema.GroupVersionKind]bool{}

func init() {
	for apiVersion, kinds := range map[schema.GroupVersion]struct{ bounded, whole []string }{
		{Version: "v1"}:                                        {[]string{"ConfigMap", "Pod", "Secret", "Service", "ServiceAccount"}, []string{"Namespace", "Node"}},
		{Group: "apps", Version: "v1"}:                         {[]string{"Deployment"}, nil},
		{Group: "batch", Version: "v1"}:                        {[]string{"Job"}, nil},
		{Group: "networking.k8s.io", Version: "v1"}:            {[]string{"NetworkPolicy"}, nil},
		{Group: "policy", Version: "v1"}:                       {[]string{"PodDisruptionBudget"}, nil},
		{Group: "rbac.authorization.k8s.io", Version: "v1"}:    {[]string{"Role", "RoleBinding"}, []string{"ClusterRole", "ClusterRoleBinding"}},
		{Group: "admissionregistration.k8s.io", Version: "v1"}: {nil, []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}},
		{Group: "apiextensions.k8s.io", Version: "v1"}:         {nil, []string{"CustomResourceDefinition"}},
		{Group: "apiregistration.k8s.io", Version: "v1"}:       {nil, []string{"APIService"}},
		v1alpha1.SchemeGroupVersion:                            {nil, []string{"CatalogSource", "ClusterServiceVersion", "InstallPlan", "Subscription"}},
		operatorsv1.GroupVersion:                               {nil, []string{"Operator", "OperatorGroup"}},
		operatorsv2.GroupVersion:                               {[]string{"OperatorCondition"}, nil},
	} {
		for _, kind := range kinds.bounded {
			watchedKinds[apiVersion.WithKind(kind)] = true
		}
		for _, kind := range kinds.whole {
			watchedKinds[apiVersion.WithKind(kind)] = false
		}
	}
}

func watched(gvk schema.GroupVersionKind) bool {
	_, ok := watchedKinds[gvk]
	return ok
}

// Scheme returns the Go types of all that the cache holds.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
		v1alpha1.AddToScheme, operatorsv1.AddToScheme, operatorsv2.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// CacheOptions returns what the cache of the manager shall be like.
func (o Options) CacheOptions() cache.Options {
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if len(o.Namespaces) == 0 {
		return options
	}
	namespaces := map[string]cache.Config{}
	for _, name := range o.cached() {
		namespaces[name] = cache.Config{}
	}
	options.ByObject = map[client.Object]cache.ByObject{}
	for gvk, bounded := range watchedKinds {
		if bounded {
			options.ByObject[prototype(gvk)] = cache.ByObject{Namespaces: namespaces}
		}
	}
	return options
}

// cached returns the namespaces that the cache of a shard is bounded by; nil when
// there is no shard.
func (o Options) cached() []string {
	if len(o.Namespaces) == 0 {
		return nil
	}
	namespaces := append(slices.Clone(o.Namespaces),
		cmp.Or(o.GlobalNamespace, controllers.DefaultGlobalNamespace), cmp.Or(o.InstallPlan.OLMNamespace, installplan.DefaultOLMNamespace))
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// NewManager returns a manager that runs the controllers; its Start does. The
// scheme and the cache of m are set here, unless they are already.
func NewManager(config *rest.Config, m ctrl.Options, o Options) (ctrl.Manager, error) {
	if m.Scheme == nil {
		m.Scheme = Scheme()
	}
	from := o.CacheOptions()
	m.Cache.DefaultTransform, m.Cache.ByObject = from.DefaultTransform, from.ByObject
	mgr, err := ctrl.NewManager(config, m)
	if err != nil {
		return nil, err
	}
	return mgr, AddToManager(mgr, o)
}

func (o *Options) complete(config *rest.Config) error {
	if o.KubernetesVersion != "" {
		return nil
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	info, err := d.ServerVersion()
	if err == nil {
		o.KubernetesVersion = info.GitVersion
	}
	return err
}

func addIndexes(indexer client.FieldIndexer) error {
	for gvk := range watchedKinds {
		if gvk == catalogSource {
			continue
		}
		if err := indexer.IndexField(context.Background(), prototype(gvk), labelIndex, labelValues); err != nil {
			return err
		}
	}
	return nil
}
