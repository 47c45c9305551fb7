import javax.jms.*;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Logs in by the mechanism that the URL names, sends a message, and receives it. */
public class Login {
    public static void main(String[] args) throws Exception {
        JmsConnectionFactory factory = new JmsConnectionFactory(args[1], args[2], args[0]);
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue("queue/logins");
            session.createProducer(queue).send(session.createTextMessage("let in"));
            System.out.println(((TextMessage) session.createConsumer(queue).receive(30_000)).getText());
        } catch (JMSSecurityException error) {
            System.out.println("refused");
        }
    }
}
