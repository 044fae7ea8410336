// SPDX-License-Identifier: Apache-2.0

// Package apiservice decides about the APIServices that a ClusterServiceVersion owns.
package apiservice

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Source is what is decided from.
type Source struct {
	CSV *owned.CSV
	// Account writes; nil: the controller.
	Account *corev1.ObjectReference
	Now     time.Time
	// Neighbours are the other CSVs of the namespace, copies left out.
	Neighbours []*owned.CSV
	// APIServices hold those that the CSV owns.
	APIServices []*apiregistrationv1.APIService
	Objects     *serving.Objects
	Deployments []*appsv1.Deployment
	// ServiceAccounts hold those that the Deployments run as.
	ServiceAccounts []*corev1.ServiceAccount
	ServedAPIs      olmcore.Observed[schema.GroupVersionKind]
	// Config is the spec.config that applies, nil for none.
	Config   *v1alpha1.SubscriptionConfig
	Backends backend.Plan
}

// Conflict names an owned APIService that exists and may not be taken over; empty when there is none.
func (s Source) Conflict() string { return "" }

// Clients returns the owned APIServices that call Services of the CSV's namespace.
func Clients(c *owned.CSV, services []*apiregistrationv1.APIService) []backend.Client { return nil }

// Install returns what brings the APIServices about, and removes what very old versions of OLM made for them.
func (s Source) Install() []olmcore.Action { return nil }

// Trust returns what makes the APIServices that exist trust what Backends say, and changes nothing else of them.
func (s Source) Trust() []olmcore.Action { return nil }

// Issue says what of the objects around the APIServices is not as it was made, empty when everything is, and whether
// installing again mends it.
func (s Source) Issue() (problem string, mendable bool) { return "", false }

// State is how the APIServices of a CSV fare.
type State string

// States.
const (
	Available  State = "Available"  // all are served
	Disrupted  State = "Disrupted"  // Pods are on their way: it will pass by itself
	NotServed  State = "NotServed"  // one does not exist or is not available
	NotUpdated State = "NotUpdated" // one is not as it should be
)

// Health returns how the APIServices fare.
func (s Source) Health() State { return Available }
