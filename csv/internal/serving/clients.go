// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Client is a webhook, a CRD conversion or an APIService that calls a Service in the namespace of the CSV. Bundle is
// its caBundle, which contains the authorities that the client trusts.
type Client struct {
	Service string
	Bundle  []byte
	// Missing is true if the CSV describes the client, but the client does not exist. While a client is missing, Pods keep
	// serving with a certificate that is still valid. A client that is being created may not trust the next certificate.
	Missing bool
}

// Clients contains the observed objects from which this package computes the health and the writes of the clients of a
// CSV: the admission webhooks, CRD conversions and APIServices that it describes. The zero value has no clients.
type Clients struct {
	model.Operator
	// Certificates contains the Certificates of the CSV. If it is nil, no Deployment has a certificate.
	Certificates interface {
		// Trust returns the caBundle that a client of a Deployment should have. have is its current caBundle, or nil. The
		// result is nil while no client should be created.
		Trust(deployment string, have []byte) []byte
	}
}

// kind contains the differences between the kinds of clients.
type kind struct {
	// existing returns the objects that exist and may call the operator. They belong to this version or to another version
	// of its namespace. A certificate rotation waits until all of them trust the next certificate.
	existing func(f *facts) []olmcore.Object
	// missing returns the names of the Services that described clients call once Install has created them.
	missing func(f *facts) []string
	// install returns the writes that create clients, or update them to match their descriptions. It returns a problem and
	// no writes if one of them is not possible.
	install func(f *facts) (actions []olmcore.Action, problem string)
	// removed returns the writes that remove the clients that the spec no longer describes.
	removed func(f *facts) []olmcore.Action
	// mayUpdate reports whether the caBundles of an existing object may be updated. Nil means that they always may be.
	mayUpdate func(f *facts, o olmcore.Object) bool
	// follow adds other changes of an existing object that need no installation. It may be nil.
	follow func(f *facts, c *change)
	// distrust returns the message for an object that does not trust the certificate of its Deployment.
	distrust func(o olmcore.Object) string
	// isLimited is true if caBundles are updated with the ServiceAccount of the OperatorGroup.
	isLimited bool
}

// kinds contains one row for each kind of clients.
var kinds = []kind{
	{
		existing: func(f *facts) []olmcore.Object { return f.all },
		missing:  func(f *facts) []string { return missingWebhooks(f, isAdmission) },
		install:  (*facts).admissions,
		removed:  removedConfigurations,
		follow:   followGroup,
		distrust: func(o olmcore.Object) string {
			return olmcore.RefOf(o).Kind + " " + o.GetName() + " does not trust the serving certificate of the deployment that it calls"
		},
		isLimited: true,
	},
	{
		existing: (*facts).converted,
		missing:  func(f *facts) []string { return missingWebhooks(f, isConversion) },
		install:  (*facts).conversions,
		removed:  revertedConversions,
		distrust: func(o olmcore.Object) string {
			return "CRD " + o.GetName() + " does not trust the serving certificate of the deployment that it calls"
		},
	},
	{
		existing:  existingAPIs,
		missing:   missingAPIs,
		install:   installAPIs,
		removed:   removedAPIs,
		mayUpdate: mayUpdateAPI,
		distrust: func(o olmcore.Object) string {
			return "the certificate authority behind APIService " + o.GetName() + " changes"
		},
		isLimited: true,
	},
}

func isAdmission(w *description) bool { return kindOf(w) != "" }

func isConversion(w *description) bool { return w.Type == v1alpha1.ConversionWebhook }

// List returns a Client for each caBundle with which the API server calls a Service of the namespace. If Install has
// not created a described client yet, the Client is Missing. Trust updates the caBundles of these clients, because a
// certificate is rotated only after all clients trust it. Certificates need not be set.
func (s Clients) List() (clients []Client) {
	f := factsOf(s)
	for _, k := range kinds {
		for _, o := range k.existing(f) {
			for _, e := range f.endpoints(o) {
				clients = append(clients, Client{Service: e.service, Bundle: *e.bundle})
			}
		}
		for _, service := range k.missing(f) {
			clients = append(clients, Client{Service: service, Missing: true})
		}
	}
	return clients
}

// Install returns the writes that create or update the clients, including the writes of Trust. If a check such as
// Problem fails, Install returns the problem and no writes. Install creates a client only once Certificates contains a
// certificate for it.
func (s Clients) Install() (actions []olmcore.Action, problem string) {
	f := factsOf(s)
	if unread := f.unread(); unread != "" {
		return nil, "not read: " + unread
	}
	if problem = problemOf(f); problem != "" {
		return nil, problem // the spec may have changed since it was judged
	}
	for _, k := range kinds {
		writes, problem := k.install(f)
		if problem != "" {
			return nil, problem
		}
		actions = append(actions, writes...)
	}
	written := targets(actions)
	for _, a := range f.trust() {
		if _, ref, _ := a.Describe(); !written.Has(ref.Key()) {
			actions = append(actions, a)
		}
	}
	return inOrder(actions), ""
}

// targets returns the keys of the objects that actions write.
func targets(actions []olmcore.Action) sets.Set[olmcore.Key] {
	keys := sets.New[olmcore.Key]()
	for _, a := range actions {
		_, ref, _ := a.Describe()
		keys.Insert(ref.Key())
	}
	return keys
}

// inOrder sorts the writes of webhooks and conversions by target. The writes for APIServices come first, in the order
// in which they were planned.
func inOrder(actions []olmcore.Action) []olmcore.Action {
	isWebhook := func(a olmcore.Action) bool {
		_, target, _ := a.Describe()
		return target.Kind == validatingKind || target.Kind == mutatingKind || target.Kind == "CustomResourceDefinition"
	}
	slices.SortStableFunc(actions, func(a, b olmcore.Action) int {
		switch x, y := isWebhook(a), isWebhook(b); {
		case x && y:
			return deployment.ByTarget(a, b)
		case x:
			return 1
		case y:
			return -1
		}
		return 0
	})
	return actions
}

// endpoint points to the caBundle with which an object calls a Service of the CSV's namespace.
type endpoint struct {
	service string
	bundle  *[]byte
}

// endpoints returns the endpoints of an object that call the operator and verify its certificate.
func (f *facts) endpoints(o olmcore.Object) (endpoints []endpoint) {
	switch o := o.(type) {
	case *apiregistrationv1.APIService:
		service := cmp.Or(o.Spec.Service, &apiregistrationv1.ServiceReference{})
		if service.Namespace == f.source.CSV.Namespace && !o.Spec.InsecureSkipTLSVerify {
			endpoints = append(endpoints, endpoint{service.Name, &o.Spec.CABundle})
		}
	case *apiextensionsv1.CustomResourceDefinition:
		if config := clientConfig(o); f.calledBy(config) {
			endpoints = append(endpoints, endpoint{config.Service.Name, &config.CABundle})
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, config := range f.calls(o) {
			endpoints = append(endpoints, endpoint{config.Service.Name, &config.CABundle})
		}
	}
	return endpoints
}
