// SPDX-License-Identifier: Apache-2.0

package kinds

import "fmt"

// Failure words an API server's error about the object of a step as OLM does; exists
// says that the object is to be updated.
type Failure func(name string, exists bool, message string) string

// failureOf is the wording of most kinds, with the word that OLM has for them.
func failureOf(word string) Failure {
	return func(name string, exists bool, message string) string {
		verb := "creating"
		if exists {
			verb = "updating"
		}
		return fmt.Sprintf("error %s %s %s: %s", verb, word, name, message)
	}
}

// failedUpdate is the wording of kinds that OLM creates or updates in one.
func failedUpdate(word string) Failure {
	return func(name string, _ bool, message string) string {
		return fmt.Sprintf("error updating %s %s: %s", word, name, message)
	}
}

func failedDefinition(name string, exists bool, message string) string {
	if exists {
		return fmt.Sprintf("error updating CRD %q: %s", name, message)
	}
	return message
}

func failedPullSecret(name string, _ bool, message string) string {
	return fmt.Sprintf("error creating secret %s - %s", name, message)
}

func failedSecret(name string, _ bool, message string) string {
	return fmt.Sprintf("error updating secret: %s: %s", name, message)
}
