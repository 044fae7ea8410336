// SPDX-License-Identifier: Apache-2.0

// Package webhook decides about the webhooks that a ClusterServiceVersion describes: the configurations for admission,
// and the conversion of its CRDs.
package webhook

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Source is what is decided from.
type Source struct {
	CSV *owned.CSV
	// Group is the one of the namespace; its account, if any, writes.
	Group   *operatorsv1.OperatorGroup
	Account *corev1.ObjectReference
	Objects *serving.Objects
	CRDs    []*apiextensionsv1.CustomResourceDefinition
	// Backends hold the certificates; every Deployment has one.
	Backends backend.Plan
}

// Problem says what is wrong with the webhook descriptions of a CSV; empty when nothing is.
func Problem(c *owned.CSV) string { return "" }

// Clients returns who calls the Services of a CSV's namespace for webhooks: of this CSV, and of its other versions.
func Clients(c *owned.CSV, objects *serving.Objects, crds []*apiextensionsv1.CustomResourceDefinition) []backend.Client {
	return nil
}

// State is how the webhooks of a CSV fare.
type State string

// States.
const (
	Installed State = "Installed" // all are as they should be
	Missing   State = "Missing"   // one does not exist, or was made from something else
	Failing   State = "Failing"   // something is in the way
)

// Health returns how the webhooks fare, and of Failing why.
func (s Source) Health() (State, string) { return Installed, "" }

// Install returns what brings the webhooks about, all checks first, and why that is not possible; empty when it is.
// Configurations of descriptions that are gone from the spec are removed.
func (s Source) Install() (actions []olmcore.Action, problem string) { return nil, "" }

// Trust returns what makes the webhooks that exist trust what Backends say, and changes nothing else of them.
func (s Source) Trust() []olmcore.Action { return nil }
