// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// auditPolicy keeps who asked for what, and of writes what was sent and what became of it.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: coordination.k8s.io}, {group: "", resources: [events]}, {group: events.k8s.io}]
- level: RequestResponse
  verbs: [create, update, patch, delete]
- level: Metadata
`

// Request is one request that the API server answered.
type Request struct {
	URI       string `json:"requestURI"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	Object struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Status   metav1.Status    `json:"responseStatus"`
	Sent     json.RawMessage  `json:"requestObject"`
	Answered json.RawMessage  `json:"responseObject"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
}

// Writes reports whether the request asks for a change.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Requests returns all requests until now but those for Leases and Events, in
// the order in which they were answered; of one user when a name is given.
func (c *ControlPlane) Requests(user string) ([]Request, error) {
	data, err := os.ReadFile(c.path("audit.log"))
	if err != nil {
		return nil, err
	}
	var requests []Request
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if !bytes.HasSuffix(lines.Bytes(), []byte("}")) {
			continue // it is being written
		}
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		if user == "" || strings.EqualFold(r.User.Username, user) {
			requests = append(requests, r)
		}
	}
	return requests, lines.Err()
}
